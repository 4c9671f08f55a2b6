//! `dendrer cherrypick`: a transition of one run into another that has what it was decided on.

use clap::Args;
use dendrer::cherrypick::{Candidate, Imported, import};
use dendrer::kernel::contract::{Checked, FieldCheck, ImportRefused};
use dendrer::kernel::step::Pick;
use dendrer::recorder::World;
use dendrer_object::record::Record;
use dendrer_object::{Code, RunName, Value};
use dendrer_view::table::{Align, Table};
use dendrer_view::{count, document, quote};

use crate::address::Pos;
use crate::address::Rev;
use crate::address::one_tick;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::global::tick_arg;
use crate::out::Out;
use crate::out::Style;

/// `cherrypick`
#[derive(Debug, Args)]
pub(crate) struct Cherrypick {
    /// What is imported: RUN@TICK, or RUN with --tick
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run it comes from
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Its tick there
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) tick: Option<Pos>,
    /// The run that takes it in, at its last tick
    #[arg(long, value_name = "RUN")]
    pub(crate) into: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Print the context hash in full
    #[arg(long)]
    pub(crate) show_hash: bool,
    /// Check only: write nothing, no refusal either
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, args: &Cherrypick, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new(Code::E0106, "say what is imported: dendrer cherrypick --run RUN --tick N --into TARGET")
    })?;
    let rev = Rev::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; what is imported is of a run of the store",
        )
        .note("nothing was changed"));
    }
    let into = Rev::parse(&args.into)?;
    if into.bundle.is_some() || into.pos.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a target is a run of the store; it takes in at its last tick",
        )
        .note("nothing was changed"));
    }
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "cherrypick");
    let trace = source.trace_through(&counted, &rev)?;
    let say = "say once which tick is imported: --tick N, or RUN@N";
    let tick = one_tick(args.tick.as_ref(), &rev, &trace, say)?;
    let candidate = Candidate::read(&trace, tick)?;
    let target = source.trace_through(&counted, &into)?;
    let name = target.name().clone();
    let mut pick = candidate.check(&target, target.tip())?;
    pick.reason = args.reason.as_deref().map(Into::into);
    let (at, world) = (target.tip(), Box::new(World::default()));
    let imported = match args.dry_run {
        // The door is asked all the same, and nothing is written.
        true => {
            let store = &context::rehearse(global)?;
            import(store, &name, &mut pick, at, world, true)?
        }
        false => {
            let repo = context::write_store(global)?;
            let store = repo.writer()?;
            repo.signing_key()?;
            let imported = import(store, &name, &mut pick, at, world, false)?;
            context::close(repo)?;
            imported
        }
    };
    drop(progress);
    let answer = Answer { args, pick: &pick, target: &name, tip: target.tip(), imported: &imported };
    if out.is_text() {
        answer.print(out)?;
    } else {
        out.document(&answer.document())?;
    }
    answer.end(out)
}

struct Answer<'a> {
    args: &'a Cherrypick,
    pick: &'a Pick,
    target: &'a RunName,
    tip: u64,
    imported: &'a Imported,
}

impl Answer<'_> {
    fn checked(&self) -> &Checked {
        &self.pick.checked
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        let checked = self.checked();
        let [(name, version), _] = &checked.contracts;
        let ok = out.paint(Style::Good, "OK");
        let differ = matches!(
            checked.refused,
            Some(ImportRefused::ContractsDiffer { .. } | ImportRefused::NoContract(..))
        );
        if !differ {
            out.line(format!("contract   {name}/{version} on both sides   {ok}"))?;
        }
        let names: Vec<&str> = checked.fields.iter().map(|field| &*field.name).collect();
        if !names.is_empty() {
            out.line(format!(
                "requires   {}   (from the contract, not from the model)",
                quote::escape(&names.join(", "))
            ))?;
        }
        out.line(format!("source     {}@{}, state before it", self.pick.run, self.pick.tick))?;
        if let Some(hash) = checked.hash {
            let fields = count(checked.fields.len() as u64, "required field", "required fields");
            let hash = if self.args.show_hash { hash.to_string() } else { hash.short() };
            out.line(format!(
                "hash       {hash}   made again from the source state, covers {fields}   {ok}"
            ))?;
        }
        out.line(format!("target     {}@{}", self.target, self.tip))?;
        let mut table = Table::new(["", "", "", ""].map(|name| (name, Align::Left)));
        for field in &checked.fields {
            table.row(field_row(field));
        }
        for line in table.lines(out.width()).0.into_iter().skip(1) {
            let style = if line.trim_start().starts_with("FAIL") { Style::Bad } else { Style::Good };
            let line = out.paint(style, &line);
            out.line(line)?;
        }
        if let Some(refused) = &checked.refused {
            let violation = matches!(refused, ImportRefused::ContextViolation { .. });
            let words = if violation { "CONTEXT VIOLATION - IMPORT REJECTED" } else { "IMPORT REJECTED" };
            let line = out.paint(Style::Bad, words);
            out.line(line)?;
            return Ok(());
        }
        match self.imported {
            Imported::Done { .. } if self.args.dry_run => {
                out.line("MAY BE IMPORTED   nothing was written (dry run)")?;
            }
            Imported::Done { marker, record } => out.line(format!(
                "IMPORTED   as {}@{}, behind its marker run.cherrypick at tick {}   hash {}",
                self.target,
                tick_of(record),
                tick_of(marker),
                record.id().short()
            ))?,
            Imported::Refused(_) => {}
        }
        for name in &checked.advisory {
            let name = quote::escape(name);
            let line = format!(
                "WARN       advisory dependency {name} is absent in the target (told, and no reason to refuse)"
            );
            let line = out.paint(Style::Warn, &line);
            out.line(line)?;
        }
        Ok(())
    }

    /// The exit code, or the failure that says why nothing was imported.
    fn end(&self, out: &mut Out) -> Result {
        let Some(refused) = &self.checked().refused else { return Ok(0) };
        let failure = self.refused(refused);
        let kept = if self.args.dry_run { "" } else { "; the refusal is kept beside the run" };
        let failure = failure.note(format!("no state was modified and no transition was committed{kept}"));
        if out.is_text() { Err(failure) } else { Ok(failure.exit()) }
    }

    fn refused(&self, refused: &ImportRefused) -> Failure {
        let (run, before) = (self.pick.run.as_str(), self.pick.tick - 1);
        let mut failure = Failure::new(refused.code(), refused.to_string());
        match refused {
            ImportRefused::ContextViolation { .. } => {
                for field in self.checked().fields.iter().filter(|field| field.wrong.is_some()) {
                    let side = |value: &Option<Value>| {
                        value.as_ref().map_or_else(|| "(absent)".to_owned(), Value::to_string)
                    };
                    let sides = format!("source {}   target {}", side(&field.source), side(&field.target));
                    failure = failure.at(&field.name, sides);
                }
                failure = failure.note("risk: SILENT_DISASTER_PREVENTED");
                // Only what is there can be set: to decide again, the target's values are taken to the source.
                let differing = self.checked().fields.iter().filter(|field| field.wrong.is_some());
                let sets: Vec<String> = differing
                    .filter_map(|field| Some(format!("{}={}", field.name, field.target.as_ref()?)))
                    // A value of a tagged form is not written as it is read.
                    .filter(|set| !set.contains("\"$"))
                    .collect();
                let before = before.to_string();
                let mut argv = vec!["dendrer", "fork", "--run", run, "--from", "tick", &before];
                argv.extend(sets.iter().flat_map(|set| ["--set", set.as_str()]));
                failure.help(&argv)
            }
            ImportRefused::ContractsDiffer { .. } => {
                let failure = failure.note("fields were not compared; the version is checked first");
                let [source, target] = &self.checked().contracts;
                let named = |(name, version): &(std::sync::Arc<str>, std::sync::Arc<str>)| {
                    format!("{name}/{version}")
                };
                match () {
                    // A side without a contract has nothing to compare.
                    () if source.0.is_empty() || target.0.is_empty() => failure,
                    () if source != target => {
                        failure.help(&["dendrer", "contract", "diff", &named(source), &named(target)])
                    }
                    // One name for two packs: each run says which it means.
                    () => {
                        let at = format!("{run}@{before}");
                        failure.help(&["dendrer", "contract", "diff", &at, self.target.as_str()])
                    }
                }
            }
            ImportRefused::NoContext => {
                failure.note("record the run at stage 2 or 3: dendrer commit --run NEW --stage 2 --pack FILE")
            }
            ImportRefused::NotEnforced => {
                failure.note("record the target at stage 2: dendrer commit --run NEW --stage 2")
            }
            ImportRefused::NoContract(..) => failure
                .note("add the type to `contracts` of the pack, and record both runs under it")
                .help(&["dendrer", "contract", "show", &format!("{run}@{before}")]),
            ImportRefused::Violates(_) => failure
                .note("decide again in the target, where what it would break can be seen")
                .help(&["dendrer", "contract", "check", self.target.as_str()])
                .help(&["dendrer", "show", &format!("{run}@{}", self.pick.tick)]),
            ImportRefused::HashUnderspecified(_) | ImportRefused::AtTheDoor { .. } => failure,
        }
    }

    /// The answer in the shape of `validate_import` (dendrer paper, appendix E.2).
    fn validation(&self) -> Value {
        let risk = ("risk", Value::from("silent_disaster_prevented"));
        match &self.checked().refused {
            None => Value::record([("ok", Value::from("context_compatible"))]),
            Some(ImportRefused::ContextViolation { type_name, fields }) => Value::record([
                ("error", Value::from("context_violation")),
                ("missing_deps", Value::array(fields.iter().map(|name| Value::from(&**name)))),
                ("intent", Value::from(type_name.as_str())),
                risk,
            ]),
            Some(ImportRefused::HashUnderspecified(_)) => Value::record([
                ("error", Value::from("hash_contract_mismatch")),
                ("reason", Value::from("hash_underspecified")),
            ]),
            Some(refused) => {
                let kind = refused.code().kind();
                Value::record([("error", Value::from(kind))])
            }
        }
    }

    fn document(&self) -> Value {
        let checked = self.checked();
        let contract = |(name, version): &(std::sync::Arc<str>, std::sync::Arc<str>)| {
            Value::record([("name", Value::from(&**name)), ("version", Value::from(&**version))])
        };
        let record = |record: Option<&Record>| {
            record.map_or(Value::Null, |record| {
                Value::record([("id", Value::from(record.id())), ("tick", Value::from(record.header().tick))])
            })
        };
        // What a dry run made is nowhere.
        let (marker, transition, refusal) = match self.imported {
            _ if self.args.dry_run => (None, None, None),
            Imported::Done { marker, record } => (Some(marker), Some(record), None),
            Imported::Refused(refusal) => (None, None, Some(refusal)),
        };
        let refused = checked.refused.as_ref().map_or(Value::Null, |refused| {
            let (code, message) = (refused.code(), refused.to_string());
            Value::record([("code", Value::from(code)), ("message", Value::from(message))])
        });
        let [source, target] = &checked.contracts;
        document(
            "cherrypick",
            [
                ("run", Value::from(self.pick.run.as_str())),
                ("tick", Value::from(self.pick.tick)),
                ("into", Value::from(self.target.as_str())),
                ("target_tick", Value::from(self.tip)),
                ("source_contract", contract(source)),
                ("target_contract", contract(target)),
                ("hash", Value::from(checked.hash)),
                ("fields", Value::array(checked.fields.iter().map(field_json))),
                ("advisory_missing", Value::array(checked.advisory.iter().map(|name| Value::from(&**name)))),
                ("allowed", Value::from(checked.refused.is_none())),
                ("refused", refused),
                ("validation", self.validation()),
                ("marker", record(marker)),
                ("transition", record(transition)),
                ("refusal", refusal.map_or(Value::Null, |refusal| Value::from(refusal.id()))),
                ("dry_run", Value::from(self.args.dry_run)),
            ],
        )
    }
}

fn tick_of(record: &Record) -> u64 {
    record.header().tick.unwrap_or(0)
}

fn field_row(field: &FieldCheck) -> Vec<String> {
    let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let mark = if field.wrong.is_some() { "FAIL" } else { "OK" };
    let rule = match &field.wrong {
        Some(wrong) => quote::escape(wrong),
        None => quote::escape(&field.rule),
    };
    vec![
        mark.to_owned(),
        quote::escape(&field.name),
        format!("source {}   target {}", side(&field.source), side(&field.target)),
        rule,
    ]
}

fn field_json(field: &FieldCheck) -> Value {
    let side = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
    Value::record([
        ("name", Value::from(&*field.name)),
        ("rule", Value::from(&*field.rule)),
        ("source", side(&field.source)),
        ("source_absent", Value::from(field.source.is_none())),
        ("target", side(&field.target)),
        ("target_absent", Value::from(field.target.is_none())),
        ("ok", Value::from(field.wrong.is_none())),
        ("wrong", Value::from(field.wrong.as_deref())),
    ])
}
