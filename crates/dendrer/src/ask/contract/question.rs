//! The questions of `contract` that read, as data.
//!
//! A contract is named by an address, or is that of a pack which the question contains.

use dendrer_object::text::nearest;
use dendrer_object::{Code, RunName, TypeName, Value, question};

use super::compare::{ContractChange, compare};
use super::find::{FoundContract, Listing, list};
use super::lint::{Linted, lint};
use super::suggest::{SuggestFound, SuggestQuestion, suggest};
use super::terms::terms;
use super::{CheckedContract, ContractPeriod, check};
use crate::address::{Address, Position};
use crate::pack::{Files, check as check_pack, read, text_of, unsound};
use crate::problem::{Problem, no_pack};
use crate::run::declared;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, exclude, in_order};

question! {
    /// Asks which transitions of a run its contracts would have refused, and which violations happened
    pub struct ContractCheckQuestion: "contract-check-question" {
        /// The run, as an address
        pub run: String,
        /// Another contract than those in force: NAME/VERSION, or a run
        pub contract: Option<String>,
        /// The pack whose contract is used instead, as its text or its value
        pub pack: Option<Value>,
        /// The first tick
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
        /// The only type whose transitions are checked
        pub r#type: Option<String>,
    }

    /// Asks which contracts the runs of a store are under
    pub struct ContractListQuestion: "contract-list-question" {}

    /// Asks for the terms of a contract
    pub struct ContractShowQuestion: "contract-show-question" {
        /// NAME/VERSION, or a run as an address
        pub contract: Option<String>,
        /// A pack, as its text or its value
        pub pack: Option<Value>,
        /// The only type that is shown
        pub r#type: Option<String>,
    }

    /// Asks what one contract asks that another does not
    pub struct ContractDiffQuestion: "contract-diff-question" {
        /// The one: NAME/VERSION, or a run as an address
        pub a: Option<String>,
        /// A pack in place of the one, as its text or its value
        pub pack_a: Option<Value>,
        /// The other, which is ranked
        pub b: Option<String>,
        /// A pack in place of the other, as its text or its value
        pub pack_b: Option<Value>,
    }

    /// Asks what in a contract is allowed and most likely not meant
    pub struct ContractLintQuestion: "contract-lint-question" {
        /// NAME/VERSION, or a run as an address
        pub contract: Option<String>,
        /// A pack, as its text or its value
        pub pack: Option<Value>,
    }

    /// Asks for fields that decide and that no contract names
    pub struct ContractSuggestQuestion: "contract-suggest-question" {
        /// The runs, as addresses
        pub runs: Vec<String>,
        /// The only type whose transitions are decided again
        pub r#type: Option<String>,
        /// The number of times that a transition is decided again at most; 20000 if not given
        pub tries: Option<u64>,
    }
}

/// The number of tries if none is given.
const TRIES: u64 = 20_000;

/// A contract, and the only type that is shown of it.
#[derive(Debug)]
pub struct ContractShowReply {
    /// The contract.
    pub found: FoundContract,
    /// The type.
    pub only: Option<TypeName>,
}

/// Two contracts, and the changes from the one to the other.
#[derive(Debug)]
pub struct ContractDiffReply {
    /// The contract that is compared with.
    pub old: FoundContract,
    /// The contract that is ranked.
    pub new: FoundContract,
    /// The changes.
    pub changes: Vec<ContractChange>,
}

/// The findings of a contract.
#[derive(Debug)]
pub struct ContractLintReply {
    /// The contract, as it was named.
    pub named: String,
    /// The findings.
    pub linted: Linted,
}

impl Asked for ContractCheckQuestion {
    type Reply = CheckedContract;

    fn ask(&self, desk: &mut dyn Desk) -> Result<CheckedContract, Problem> {
        let pack = ("--pack", self.pack.is_some());
        exclude(("--contract", self.contract.is_some()), &[pack])?;
        let asked = desk.judged_run(&Address::parse(&self.run)?, "contract")?;
        let (address, trace) = (asked.address, asked.trace);
        let from = self.from.as_ref().map_or(Ok(0), |position| position.tick(&trace))?;
        let to = match (&self.to, &address.pos) {
            (Some(_), Some(_)) => {
                return Err(Problem::new(Code::E0106, "say once where it ends: --to, or RUN@N"));
            }
            (Some(position), None) | (None, Some(position)) => position.tick(&trace)?,
            (None, None) => trace.tip(),
        };
        in_order(from, to)?;
        let only = type_name(self.r#type.as_deref())?;
        let named = Named::of((&self.contract, "contract"), (&self.pack, "pack")).ok();
        let under = named.map(|named| named.resolve(true, desk)).transpose()?;
        let checked = check(&trace, under.as_ref().map(|found| &found.terms.pack), from, to, only.as_ref())?;
        if let Some(only) = &only
            && checked.in_force.iter().all(|terms| !terms.contracts.types.contains_key(only))
        {
            let shown = named.map_or_else(|| trace.name().to_string(), |named| named.name(desk));
            let what = format!("no contract of {} is for {only}", trace.name());
            let names = checked.in_force.iter().flat_map(|terms| terms.contracts.types.keys());
            return Err(no_type(what, &shown, only, names.map(TypeName::as_str)));
        }
        let asks_nothing =
            |terms: &ContractPeriod| terms.contracts.types.is_empty() && terms.violations.is_empty();
        if checked.in_force.iter().all(asks_nothing) {
            let what = format!("the contract of {} requires nothing and forbids nothing", trace.name());
            return Err(Problem::new(Code::E0512, what).note("so there is nothing that a check could find"));
        }
        Ok(checked)
    }
}

impl Asked for ContractListQuestion {
    type Reply = Listing;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Listing, Problem> {
        Ok(list(&desk.reader()?)?)
    }
}

impl Asked for ContractShowQuestion {
    type Reply = ContractShowReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ContractShowReply, Problem> {
        let named = Named::of((&self.contract, "contract"), (&self.pack, "pack"))?;
        let found = named.resolve(true, desk)?;
        let only = type_name(self.r#type.as_deref())?;
        if let Some(only) = &only {
            let terms = terms(&found.terms.pack, &found.terms.marks);
            let names = || terms.types.iter().map(|one| one.name.as_str());
            if names().all(|name| name != only.as_str()) {
                let what = format!("{} says nothing of {only} by name", found.terms.title());
                return Err(no_type(what, &named.name(desk), only, names()));
            }
        }
        Ok(ContractShowReply { found, only })
    }
}

impl Asked for ContractDiffQuestion {
    type Reply = ContractDiffReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ContractDiffReply, Problem> {
        let a = Named::of((&self.a, "a"), (&self.pack_a, "pack_a"))?;
        let b = Named::of((&self.b, "b"), (&self.pack_b, "pack_b"))?;
        let (old, new) = (a.resolve(true, desk)?, b.resolve(true, desk)?);
        let changes = compare(&old.terms.pack, &new.terms.pack);
        Ok(ContractDiffReply { old, new, changes })
    }
}

impl Asked for ContractLintQuestion {
    type Reply = ContractLintReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ContractLintReply, Problem> {
        let named = Named::of((&self.contract, "contract"), (&self.pack, "pack"))?;
        let linted = match named {
            Named::Pack(Value::String(text), _) => lint(text.as_bytes(), Files::Nowhere),
            Named::Pack(pack, _) => lint(text_of(pack).as_bytes(), Files::Of(pack)),
            Named::Address(_) => {
                let found = named.resolve(false, desk)?;
                let pack = found.terms.pack.value();
                // Without the text that people wrote, lines are those of the one-line form.
                lint(found.text.unwrap_or_else(|| text_of(pack)).as_bytes(), Files::Of(pack))
            }
        };
        Ok(ContractLintReply { named: named.name(desk), linted })
    }
}

impl Asked for ContractSuggestQuestion {
    type Reply = SuggestFound;

    fn ask(&self, desk: &mut dyn Desk) -> Result<SuggestFound, Problem> {
        let only = type_name(self.r#type.as_deref())?;
        let mut sources = Vec::new();
        for run in &self.runs {
            let address = Address::parse(run)?;
            if address.pos.is_some() {
                let what = format!("{run} names a tick; whole runs are looked at");
                return Err(Problem::new(Code::E0106, what));
            }
            sources.push((desk.open(&address)?, address));
        }
        let watch = desk.watch("contract");
        let mut traces: Vec<Trace> = Vec::new();
        for (source, address) in &sources {
            let trace = source.trace_through(&watch.over(&source.store), address)?;
            if traces.iter().any(|known| known.name() == trace.name() && address.bundle.is_none()) {
                return Err(Problem::new(Code::E0106, format!("{} is named twice", trace.name())));
            }
            desk.reads_run(&trace);
            traces.push(trace);
        }
        if let (Some(only), Some(first)) = (&only, traces.first())
            && traces.iter().all(|trace| declared::types(trace, [only.as_str()]).is_err())
        {
            declared::types(first, [only.as_str()])?;
        }
        let tries = self.tries.unwrap_or(TRIES);
        Ok(suggest(&traces, SuggestQuestion { only: only.as_ref(), tries })?)
    }
}

/// A contract as a question names it.
#[derive(Debug, Clone, Copy)]
enum Named<'q> {
    /// By an address.
    Address(&'q str),
    /// By a pack, and the member that has it.
    Pack(&'q Value, &'static str),
}

impl<'q> Named<'q> {
    /// The one of two members that is given.
    fn of(
        (address, address_member): (&'q Option<String>, &str),
        (pack, pack_member): (&'q Option<Value>, &'static str),
    ) -> Result<Named<'q>, Problem> {
        match (address, pack) {
            (Some(address), None) => Ok(Named::Address(address)),
            (None, Some(pack)) => Ok(Named::Pack(pack, pack_member)),
            _ => {
                let what = format!("give one of the members {address_member} and {pack_member}");
                Err(Problem::new(Code::E0106, what))
            }
        }
    }

    /// Returns the name for messages.
    fn name(self, desk: &dyn Desk) -> String {
        match self {
            Named::Address(address) => address.to_owned(),
            Named::Pack(_, member) => desk.name_of(member),
        }
    }

    /// Finds the contract: that of a pack, of NAME/VERSION, or of a run, with or without its extensions.
    fn resolve(self, with_extensions: bool, desk: &mut dyn Desk) -> Result<FoundContract, Problem> {
        let address = match self {
            Named::Address(address) => address,
            Named::Pack(pack, member) => {
                let found = match pack {
                    Value::String(text) => read(text.as_bytes()).map(FoundContract::of_source),
                    pack => match check_pack(pack) {
                        Ok(pack) => Ok(FoundContract::of_pack(pack)),
                        // The places of the problems are those in the one-line form.
                        Err(_) => read(pack.to_string().as_bytes()).map(FoundContract::of_source),
                    },
                };
                return found.map_err(|problems| unsound(&desk.name_of(member), &problems));
            }
        };
        match address.rsplit_once('/') {
            // The name of a run has no slash; that of a bundle may.
            Some((name, version)) if !address.contains(".dnd") && !address.contains(".html") => {
                of_name(address, (name, version), desk)
            }
            _ => in_run(address, with_extensions, desk),
        }
    }
}

fn of_name(
    address: &str,
    (name, version): (&str, &str),
    desk: &mut dyn Desk,
) -> Result<FoundContract, Problem> {
    let store = desk.reader()?;
    let listing = list(&store)?;
    let mut found = listing.named(name, version);
    let (first, second) = (found.next(), found.next());
    let runs = |runs: &[RunName]| runs.iter().take(3).map(RunName::as_str).collect::<Vec<_>>().join(", ");
    match (first, second) {
        (Some(one), None) => {
            let run = one.runs.last().expect("a listed pack has a run").clone();
            drop(store);
            // The run that carries the contract, and what was added to it there, say nothing of the contract.
            Ok(FoundContract { place: None, ..in_run(run.as_str(), false, desk)? })
        }
        (Some(_), Some(_)) => {
            let mut problem = Problem::new(Code::E0432, format!("{address} stands for several packs"));
            for one in listing.named(name, version).take(5) {
                problem = problem.at(&one.pack.digest().short(), format!("runs {}", runs(&one.runs)));
            }
            Err(problem.help(&["dendrer", "contract", "list"]))
        }
        (None, _) => {
            let titles: Vec<String> =
                listing.packs.iter().map(|one| format!("{}/{}", one.pack.name, one.pack.version)).collect();
            let what = format!("no run is under a contract {address}, and no file has that name");
            let problem = Problem::new(Code::E0431, what);
            let problem = match nearest(address, titles.iter().map(String::as_str)) {
                Some(near) => problem.note(format!("did you mean {near}?")),
                None => problem,
            };
            Err(problem.help(&["dendrer", "contract", "list"]))
        }
    }
}

fn in_run(text: &str, with_extensions: bool, desk: &mut dyn Desk) -> Result<FoundContract, Problem> {
    let address = Address::parse(text)?;
    let source = desk.open(&address)?;
    let address = address.resolve(&source.store)?;
    let trace = source.trace(&address)?;
    let tick = address.pos.as_ref().map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
    FoundContract::in_run(&trace, tick, with_extensions)?.ok_or_else(|| {
        let what = format!("{} has no pack at tick {tick}", trace.name());
        no_pack(Problem::new(Code::E0909, what), trace.name().as_str())
    })
}

/// Reads the name of a type.
fn type_name(text: Option<&str>) -> Result<Option<TypeName>, Problem> {
    let parsed = text.map(str::parse::<TypeName>).transpose();
    parsed.map_err(|error| Problem::new(Code::E0210, error.to_string()))
}

/// Returns the problem of a type that no contract is for.
fn no_type<'n>(what: String, shown: &str, only: &TypeName, names: impl Iterator<Item = &'n str>) -> Problem {
    let problem = Problem::new(Code::E0415, what).help(&["dendrer", "contract", "show", shown]);
    match nearest(only.as_str(), names) {
        Some(near) => problem.note(format!("did you mean {near}?")),
        None => problem,
    }
}
