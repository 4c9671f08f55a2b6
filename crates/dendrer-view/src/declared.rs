//! The table of the documents that are declared.

use dendrer_object::Value;
use dendrer_object::document::PublishedDocument;

/// A schema that is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedSchema {
    pub(crate) name: &'static str,
    /// Whether the head of the document names what was read.
    is_read: bool,
    pub(crate) schema: fn() -> Value,
}

impl PublishedSchema {
    /// The schema of a document.
    pub(crate) const fn of<T: PublishedDocument>() -> PublishedSchema {
        PublishedSchema { name: T::NAME, is_read: T::IS_READ, schema: T::published }
    }

    /// The schema of a line of which no member names it.
    pub(crate) const fn of_line(name: &'static str, schema: fn() -> Value) -> PublishedSchema {
        PublishedSchema { name, is_read: false, schema }
    }
}

/// Makes the table of the documents that are declared.
macro_rules! declared {
    ($($document:path,)*) => {
        &[$(PublishedSchema::of::<$document>()),*]
    };
}

/// Every declared document, in any order.
pub(crate) const DECLARED: &[PublishedSchema] = declared![
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

/// Whether the head of a document names what was read.
pub(crate) fn is_read(name: &str) -> bool {
    DECLARED.iter().any(|known| known.name == name && known.is_read)
}
