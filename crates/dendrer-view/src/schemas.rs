//! The published JSON Schemas (draft 2020-12), one for each document that is printed.

use dendrer::run::event::EventLine;
use dendrer_object::document::{Members, PublishedDocument};
use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
use crate::{ask, intent};

/// Makes the table of the documents that are declared.
macro_rules! declared {
    ($($document:path,)*) => {
        &[$((<$document as PublishedDocument>::NAME, <$document as Members>::published)),*]
    };
}

/// Name and schema of every declared document, in any order.
const DECLARED: &[(&str, fn() -> Value)] = declared![
    crate::cherrypick::CherrypickDocument,
    crate::conflicts::ConflictsDocument,
    crate::conflicts::ResolvedDocument,
    crate::fork::ForkDocument,
    crate::merge::MergeDocument,
    crate::rebase::RebaseDocument,
    crate::backup::BackupDocument,
    crate::bisect::BisectAllDocument,
    crate::bisect::BisectDocument,
    crate::branches::BranchesDocument,
    crate::casebook::DroppedDocument,
    crate::casebook::LabelsDocument,
    crate::casebook::NotesDocument,
    crate::commitments::AcceptDocument,
    crate::commitments::AdmissibleDocument,
    crate::commitments::CommitmentDiffDocument,
    crate::commitments::CommitmentGraphDocument,
    crate::commitments::CommitmentWhyDocument,
    crate::commitments::CommitmentsDocument,
    crate::commitments::DelegationDocument,
    crate::commitments::EpsilonDocument,
    crate::commit::CommitDocument,
    crate::compare::CompareDocument,
    crate::compare::HeatmapDocument,
    crate::contract::check::ContractCheckDocument,
    crate::contract::extend::ContractExtendDocument,
    crate::contract::extend::ContractKeygenDocument,
    crate::contract::found::ContractDiffDocument,
    crate::contract::found::ContractDocument,
    crate::contract::found::ContractsDocument,
    crate::contract::lint::ContractLintDocument,
    crate::contract::suggest::ContractSuggestDocument,
    crate::demo::DemoDocument,
    crate::diff::DiffDocument,
    crate::doctor::DoctorDocument,
    crate::doctor::ReportDocument,
    crate::erase::EraseDocument,
    crate::export::ExportDocument,
    FieldsDocument,
    crate::fsck::FsckDocument,
    crate::gate::AssertDocument,
    crate::gc::GcDocument,
    crate::graphs::FrontierDocument,
    crate::graphs::GraphCheckDocument,
    crate::graphs::GraphDiffDocument,
    crate::graphs::GraphDocument,
    crate::graphs::GraphMinimizeDocument,
    crate::graphs::GraphRunDocument,
    crate::graphs::GraphTestDocument,
    crate::help::ExitCodesDocument,
    crate::help::ExplainDocument,
    crate::help::HelpDocument,
    crate::import::ImportDocument,
    crate::import::ImportsDocument,
    crate::init::InitDocument,
    crate::log::LogDocument,
    crate::pack::PackCheckDocument,
    crate::pack::PackDocument,
    crate::pack::PackTestDocument,
    crate::predicate::PredicateTestDocument,
    crate::predicate::PredicatesDocument,
    crate::predicate::RegistrationDocument,
    crate::problem::ErrorDocument,
    crate::profile::ProfileDocument,
    crate::progress::ProgressDocument,
    crate::reduce::ReduceDocument,
    crate::replay::ReplayDocument,
    crate::restore::RestoreDocument,
    crate::runs::RunsDocument,
    SchemasDocument,
    crate::secrets::SecretsDocument,
    crate::show::RecordDocument,
    crate::show::ShowDocument,
    crate::state::DifferenceDocument,
    crate::state::StateDocument,
    crate::steps::CoherenceDiffDocument,
    crate::steps::CoherenceDocument,
    crate::steps::CompositionDocument,
    crate::steps::StepsDocument,
    crate::suite::SuiteDocument,
    crate::verify::VerifyAllDocument,
    crate::verify::VerifyDocument,
    crate::version::VersionDocument,
    crate::why::BacktrackDocument,
    crate::why::WhyDocument,
];

/// Name and schema of every line that is no document: no member names its schema.
const LINES: &[(&str, fn() -> Value)] = &[("event", EventLine::published), ("intent", intent::published)];

/// Returns name and schema of everything that is published.
fn all() -> impl Iterator<Item = &'static (&'static str, fn() -> Value)> {
    DECLARED.iter().chain(LINES).chain(ask::SCHEMAS)
}

/// Returns the name of every schema, in order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = all().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

/// Finds a schema.
pub fn find(name: &str) -> Option<Value> {
    all().find(|(known, _)| *known == name).map(|(_, schema)| schema())
}

document! {
    /// The names of the schemas
    pub object SchemasDocument: "schemas" () {
        /// The names, in order
        items: Vec<&'static str> = names(),
    }
}

/// The names of all schemas.
#[derive(Debug, Clone, Copy)]
pub struct SchemaListAnswer;

impl Answer for SchemaListAnswer {
    fn document(&self) -> Value {
        SchemasDocument::of().into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let names = names();
        let sum = format!("{} of {} schemas", names.len(), names.len());
        names.into_iter().map(Line::from).chain([sum.into()]).collect()
    }
}

/// One schema. Its document is the schema itself.
#[derive(Debug, Clone)]
pub struct SchemaAnswer(pub Value);

impl Answer for SchemaAnswer {
    fn document(&self) -> Value {
        self.0.clone()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        add_json(&self.0, "", "", "", &mut lines);
        lines.into_iter().map(Line::from).collect()
    }
}

/// Adds a value as JSON over several lines. `lead` precedes it on its first line, `tail` follows on its last one.
fn add_json(value: &Value, pad: &str, lead: &str, tail: &str, lines: &mut Vec<String>) {
    let inner = format!("{pad} ");
    let comma = |at: usize, len: usize| if at + 1 < len { "," } else { "" };
    match value {
        Value::Object(object) if !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{"));
            for (at, (name, member)) in object.iter().enumerate() {
                let name = format!("{}: ", Value::from(&**name));
                add_json(member, &inner, &name, comma(at, object.len()), lines);
            }
            lines.push(format!("{pad}}}{tail}"));
        }
        Value::Array(array) if array.iter().any(|item| item.depth() > 0) => {
            lines.push(format!("{pad}{lead}["));
            for (at, item) in array.iter().enumerate() {
                add_json(item, &inner, "", comma(at, array.len()), lines);
            }
            lines.push(format!("{pad}]{tail}"));
        }
        scalar => lines.push(format!("{pad}{lead}{scalar}{tail}")),
    }
}

document! {
    /// The fields of a document
    pub object FieldsDocument: "fields" (name: &str, listed: &[String], own: &[String]) {
        let of_items = listed.iter().map(|name| FieldObject::of(name, "items"));
        let of_document = own.iter().map(|name| FieldObject::of(name, "document"));
        /// The name of the document
        document: &str = name,
        /// The fields
        items: Vec<FieldObject> = of_items.chain(of_document).collect(),
    }

    /// A field of a document
    object FieldObject(field: &str, owner: &str) {
        /// The name
        name: &str = field,
        /// The part of the document that has the field
        of: ["items" | "document"] = owner,
    }
}
