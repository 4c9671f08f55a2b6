//! Contracts by themselves as answers: the list of a store, one of them, and two compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::contract::compare::{ContractChange, Ranked};
use dendrer::contract::find::{Added, ContractInForce, ContractPlace, FoundContract, Listed, Listing};
use dendrer::contract::terms::{FieldTerms, Need, Never, TypeTerms, terms};
use dendrer::kernel::pack::writes::{Sound, Written};
use dendrer::kernel::pack::{Pack, PackEngine};
use dendrer::kernel::predicate::Window;
use dendrer_object::document::Positive;
use dendrer_object::{Digest, Pointer, RunName, TypeName, Value, document};

use super::{ContractChangeObject, ToolObject, change_line, extension_lines};
use crate::answer::{Answer, End, Line, Page, Style};
use crate::runs::UnclearRun;
use crate::table::{Align, Table};
use crate::{count, quote};

document! {
    /// The contracts that the runs of a store are under
    pub object ContractsDocument: "contracts" (listing: &Listing) {
        let lost = listing.unreadable.iter().map(|(run, why)| UnclearRun::of(run.as_str(), why));
        /// The contracts
        items: Vec<ListedContract> = listing.packs.iter().map(ListedContract::of).collect(),
        /// The number of runs without a contract
        without: u64 = listing.without,
        /// The runs whose contract cannot be read
        unreadable: Vec<UnclearRun> = lost.collect(),
    }

    /// A contract that runs of a store are under
    object ListedContract(listed: &Listed) {
        let pack = &listed.pack;
        /// The name
        name: &str = &pack.name,
        /// The version
        version: &str = &pack.version,
        /// The digest of the pack
        digest: Digest = pack.digest(),
        /// The types that have a contract
        types: Vec<&TypeName> = pack.contracts.types.keys().collect(),
        /// The number of violations that it forbids
        violations: usize = pack.predicates.len(),
        /// The runs
        runs: &[RunName] = &listed.runs,
    }

    /// The terms of a contract
    pub object ContractDocument: "contract" (answer: &ContractAnswer<'_>) {
        let in_force = &answer.found.terms;
        let terms = terms(&in_force.pack, &in_force.marks);
        let types = terms.types.iter().filter(|one| answer.only.is_none_or(|only| *only == one.name));
        let place = answer.found.place.as_ref();
        /// The name
        name: &str = &terms.pack.name,
        /// The version
        version: &str = &terms.pack.version,
        /// The words for people
        words: Option<&str> = terms.pack.words.as_deref(),
        /// The reducer
        reducer: PackEngine = terms.pack.engine,
        /// The digest of the WebAssembly module that reduces
        module: Option<Digest> = terms.pack.module(),
        /// The types
        items: Vec<TypeObject> = types.map(TypeObject::of).collect(),
        /// The violations that are forbidden
        never: Vec<NeverObject> = terms.never.iter().map(NeverObject::of).collect(),
        /// The fields of the state
        fields: Vec<FieldTermsObject> = terms.fields.iter().map(FieldTermsObject::of).collect(),
        /// The tools
        tools: Vec<ToolObject> = terms.pack.tools.iter().map(ToolObject::of).collect(),
        /// The other members of the pack, as they are written
        others: BTreeMap<&str, &Value> = terms.others.iter().copied().collect(),
        /// The digest of the pack by itself
        digest: Digest = in_force.digest,
        /// The extensions of the run up to the tick: those that hold at it, then those that hold later
        extensions: Vec<ExtensionObject> = in_force.extensions.iter().map(ExtensionObject::of).collect(),
        /// The run; null for a contract by itself
        run: Option<&RunName> = place.map(|place| &place.run),
        /// The tick; null for a contract by itself
        tick: Option<u64> = place.map(|place| place.tick),
        /// The stage at which the run is recorded
        stage: Option<u64> = place.and_then(|place| place.stage),
    }

    /// The terms of a type
    object TypeObject(one: &TypeTerms<'_>) {
        /// The type
        type: &TypeName = &one.name,
        /// The words for people
        words: Option<&str> = one.words,
        /// The authors that may write it
        authors: &str = one.authors,
        /// Whether the pack registers it
        registered: bool = one.registered,
        /// Whether it has a contract
        contract: bool = one.has_contract,
        /// The fields that it needs
        needs: Vec<NeedObject> = one.needs.iter().map(NeedObject::of).collect(),
        /// The fields that a model may name
        advisory: &[Arc<str>] = one.advisory,
        /// The fields that it changes
        writes: Vec<WrittenObject> = one.writes.iter().map(WrittenObject::of).collect(),
    }

    /// A field that a type needs
    object NeedObject(need: &Need<'_>) {
        /// The name
        name: &str = &need.required.name,
        /// The kind of its value
        kind: String = need.required.kind.described().to_owned(),
        /// The number of decimals that count
        precision: Option<u8> = need.required.precision,
        /// Whether it may be null
        nullable: bool = need.required.nullable,
        /// Whether it seeds the hash
        seed: bool = need.is_seed,
        /// The rule by which an import is checked
        import: &str = need.import,
        /// The extension that requires it
        since: Option<&str> = need.since,
        /// The extension that binds it
        seed_since: Option<&str> = need.seed_since,
    }

    /// A field that a rule writes
    object WrittenObject(write: &Written) {
        /// The field
        field: &str = &write.field,
        ..WriteObject = WriteObject::of(write),
    }

    /// A write of a rule
    object WriteObject(write: &Written) {
        /// The act
        act: &str = write.act,
        /// The rule, by number from 1
        rule: usize = write.rule,
        /// Whether the whole field is written
        whole: bool = write.whole,
    }

    /// A violation that a contract forbids
    object NeverObject(one: &Never<'_>) {
        let turned = match &one.sound {
            Sound::Unknown { turned_by } => &turned_by[..],
            _ => &[],
        };
        /// The name of the predicate
        name: &str = one.predicate.name(),
        /// The words for people
        words: Option<&str> = one.words,
        /// The question in words
        question: String = one.predicate.words(),
        /// The state that is looked at: the one before a transition, or the one after it
        window: Window = one.predicate.window(),
        /// The evidence that a violation cannot recover
        sound: ["by_text" | "by_rules" | "lifted" | "unknown"] = one.sound.as_str(),
        /// The rules that may take it back, by number from 1
        turned_by: &[usize] = turned,
        /// The places of the state that it reads
        reads: Vec<ReadPlace> = one.reads.iter().map(|(place, types)| ReadPlace::of(place, types)).collect(),
        /// The digest of the predicate
        digest: Digest = one.predicate.digest(),
        /// The extension that forbids it
        since: Option<&str> = one.since,
    }

    /// A place of the state that a predicate reads
    object ReadPlace(place: &Pointer, types: &[TypeName]) {
        /// The place, as a JSON pointer
        path: &Pointer = place,
        /// The types that require it
        required_by: &[TypeName] = types,
    }

    /// The terms of a field of the state
    object FieldTermsObject(field: &FieldTerms<'_>) {
        /// The name
        name: &str = field.name,
        /// The words for people
        words: Option<&str> = field.words,
        /// The number of decimals that are kept
        decimals: Option<u8> = field.decimals,
        /// The first value; null if it is not fixed
        begins: Option<&Value> = field.begins.as_ref(),
        /// Whether the first value is fixed
        begins_fixed: bool = field.begins.is_some(),
        /// The expression of the first value, as it is written
        init: Option<&Value> = field.init,
        /// The writes
        writes: Vec<FieldWriteObject> =
            field.writes.iter().map(|(write, types)| FieldWriteObject::of(write, types.as_deref())).collect(),
        /// The types and authors that may write it from stage 2 on; any, if none is named
        writers: &[Arc<str>] = field.writers,
        /// The extension that declares it
        since: Option<&str> = field.since,
    }

    /// A write of a field
    object FieldWriteObject(write: &Written, governed: Option<&[TypeName]>) {
        ..WriteObject = WriteObject::of(write),
        /// The types of the rule; null for every type
        types: Option<&[TypeName]> = governed,
    }

    /// An extension of the contract of a run
    object ExtensionObject(added: &Added) {
        /// The id
        id: &str = &added.id,
        /// The words for people
        words: Option<&str> = added.words.as_deref(),
        /// The tick at which it was written
        tick: Positive = Positive(added.tick),
        /// The first tick that it governs
        from: Positive = Positive(added.from),
        /// Whether it holds at the tick
        holds: bool = added.holds,
        /// The approver
        approved_by: &str = &added.approved_by,
        /// Whether the approver signed it
        signed: bool = added.is_signed,
        /// The changes that it makes
        adds: Vec<ContractChangeObject> = added.adds.iter().map(ContractChangeObject::of).collect(),
    }

    /// Two contracts compared
    pub object ContractDiffDocument: "contract-diff" (answer: &ContractDiffAnswer<'_>) {
        let [up, down, unranked] = answer.ranked();
        /// The first contract
        a: ComparedContract = ComparedContract::of(&answer.old.terms),
        /// The second contract
        b: ComparedContract = ComparedContract::of(&answer.new.terms),
        /// The number of changes that ask more
        stricter: u64 = up,
        /// The number of changes that ask less
        looser: u64 = down,
        /// The number of changes that cannot be ranked
        other: u64 = unranked,
        /// The changes from the first to the second
        items: Vec<ContractChangeObject> = answer.changes.iter().map(ContractChangeObject::of).collect(),
    }

    /// A contract that is compared
    object ComparedContract(terms: &ContractInForce) {
        /// The name
        name: &str = &terms.pack.name,
        /// The version
        version: &str = &terms.pack.version,
        /// The digest of the pack
        digest: Digest = terms.digest,
        /// The extensions that hold
        extensions: Vec<&str> = terms.holding().map(|added| &*added.id).collect(),
    }
}

impl Answer for Listing {
    fn document(&self) -> Value {
        ContractsDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("contract", left),
            ("runs", right),
            ("types", right),
            ("violations", right),
            ("digest", left),
            ("newest run", left),
        ]);
        for listed in &self.packs {
            let pack = &listed.pack;
            table.row(vec![
                format!("{}/{}", pack.name, pack.version),
                listed.runs.len().to_string(),
                pack.contracts.types.len().to_string(),
                pack.predicates.len().to_string(),
                pack.digest().short(),
                listed.runs.last().map(RunName::to_string).unwrap_or_default(),
            ]);
        }
        let mut lines = page.rows(&table);
        let warn = |text: String| Line::styled(Style::Warn, "WARN").then(text);
        let title = |pack: &Pack| (Arc::clone(&pack.name), Arc::clone(&pack.version));
        let alike = self.packs.windows(2).filter(|pair| title(&pair[0].pack) == title(&pair[1].pack));
        lines.extend(alike.map(|pair| {
            let Pack { name, version, .. } = &pair[1].pack;
            warn(format!(
                "  {name}/{version} stands for packs that say different things; a run says which it means"
            ))
        }));
        let unreadable = self.unreadable.iter();
        lines.extend(unreadable.map(|(run, why)| warn(format!("  {run}: {}", quote::escape(why)))));
        let contracts = count(self.packs.len() as u64, "contract", "contracts");
        let without = count(self.without, "run", "runs");
        lines.push(format!("{contracts}, {without} without one").into());
        lines
    }
}

/// A contract, or one type of it.
#[derive(Debug, Clone, Copy)]
pub struct ContractAnswer<'c> {
    /// The contract.
    pub found: &'c FoundContract,
    /// The only type that is shown; `None` for all.
    pub only: Option<&'c TypeName>,
}

impl Answer for ContractAnswer<'_> {
    fn document(&self) -> Value {
        ContractDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let ContractInForce { pack, digest, extensions, marks } = &self.found.terms;
        let by = match pack.module() {
            Some(module) => format!("module {}", module.short()),
            None => count(pack.rules() as u64, "rule", "rules"),
        };
        let mut lines = vec![
            Line::styled(Style::Strong, self.found.terms.title()).then(super::words(pack.words.as_deref())),
            Line::from(format!("digest    {digest}")),
            Line::from(format!("reducer   {}, {by}", pack.engine.as_str())),
            Line::from(enforced_words(self.found.place.as_ref())),
        ];
        let extensions = extensions.iter().flat_map(extension_lines);
        let rest = extensions.chain(super::lines(&terms(pack, marks), self.only));
        lines.extend(rest.map(Line::from));
        lines
    }
}

fn enforced_words(place: Option<&ContractPlace>) -> String {
    let Some(ContractPlace { run, tick, stage }) = place else {
        return "enforced  from stage 2 on: what a type needs is looked at in the state before each commit"
            .to_owned();
    };
    match stage {
        Some(stage) if *stage >= 2 => format!(
            "enforced  in {run} at tick {tick}, recorded at stage {stage}: what follows was asked before each commit"
        ),
        Some(stage) => format!(
            "enforced  not in {run} (tick {tick}), recorded at stage {stage}: contracts are enforced from stage 2 on"
        ),
        None => format!("enforced  not known of {run} (tick {tick}): its stage cannot be read"),
    }
}

/// Two contracts compared.
#[derive(Debug, Clone, Copy)]
pub struct ContractDiffAnswer<'c> {
    /// The contract that is compared with.
    pub old: &'c FoundContract,
    /// The contract that is ranked.
    pub new: &'c FoundContract,
    /// The changes from the one to the other.
    pub changes: &'c [ContractChange],
    /// Whether a change makes the answer a no.
    pub fails: bool,
}

impl ContractDiffAnswer<'_> {
    fn ranked(&self) -> [u64; 3] {
        let ranked = |wanted| self.changes.iter().filter(|change| change.ranked == wanted).count() as u64;
        [ranked(Ranked::Stricter), ranked(Ranked::Looser), ranked(Ranked::Other)]
    }
}

impl Answer for ContractDiffAnswer<'_> {
    fn document(&self) -> Value {
        ContractDiffDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let side = |terms: &ContractInForce| {
            let added = terms.holding().map(|added| format!(" + extension {}", quote::escape(&added.id)));
            format!("{} ({}){}", terms.title(), terms.digest.short(), added.collect::<String>())
        };
        let mut lines = vec![Line::from(format!("{} -> {}", side(&self.old.terms), side(&self.new.terms)))];
        lines.extend(self.changes.iter().map(|change| {
            let line = change_line(change);
            let (word, rest) = line.split_at(8);
            let style = match change.ranked {
                Ranked::Stricter => Style::Good,
                Ranked::Looser => Style::Warn,
                Ranked::Other => Style::Strong,
            };
            Line::styled(style, word).then(rest)
        }));
        let [stricter, looser, other] = self.ranked();
        lines.push(format!("{stricter} stricter, {looser} looser, {other} that cannot be ranked").into());
        lines.push(Line::note(match self.changes.is_empty() {
            true => "note: words and tests are not compared",
            false => "note: the second is ranked against the first; words and tests are not compared",
        }));
        lines
    }

    fn end(&self) -> End {
        if self.fails && !self.changes.is_empty() { End::No } else { End::Answered }
    }
}
