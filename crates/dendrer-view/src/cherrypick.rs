//! A transition of one run that is imported into another: the contract, the required fields on both sides, and the outcome.

use std::sync::Arc;

use dendrer::cherrypick::Imported;
use dendrer::cherrypick::question::CherrypickReply;
use dendrer::kernel::contract::{FieldCheck, FieldFault, ImportRefused};
use dendrer::repo::new_run::given_name;
use dendrer_object::record::Record;
use dendrer_object::{Code, Digest, RunName, Value, document, marker};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::{count, quote};

/// An import of a transition, or its refusal.
#[derive(Debug, Clone, Copy)]
pub struct CherrypickAnswer<'p> {
    /// The outcome.
    pub reply: &'p CherrypickReply,
    /// Whether the context hash is printed in full.
    pub show_hash: bool,
}

impl Answer for CherrypickAnswer<'_> {
    fn document(&self) -> Value {
        CherrypickDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let CherrypickReply { pick, into, tip, imported, dry_run, .. } = self.reply;
        let (show_hash, dry_run) = (self.show_hash, *dry_run);
        let checked = &pick.checked;
        let [(name, version), _] = &checked.contracts;
        let ok = |text: String| Line::from(text).then_styled(Style::Good, "OK");
        let mut lines = Vec::new();
        let differ = matches!(
            checked.refused,
            Some(ImportRefused::ContractsDiffer { .. } | ImportRefused::NoContract(..))
        );
        if !differ {
            lines.push(ok(format!("contract   {name}/{version} on both sides   ")));
        }
        let names: Vec<&str> = checked.fields.iter().map(|field| &*field.name).collect();
        if !names.is_empty() {
            let names = quote::escape(&names.join(", "));
            lines.push(format!("requires   {names}   (from the contract, not from the model)").into());
        }
        lines.push(format!("source     {}@{}, state before it", pick.run, pick.tick).into());
        if let Some(hash) = checked.hash {
            let fields = count(checked.fields.len() as u64, "required field", "required fields");
            let hash = if show_hash { hash.to_string() } else { format!("sha256:{}", hash.short()) };
            lines.push(ok(format!(
                "hash       {hash}   made again from the source state, covers {fields}   "
            )));
        }
        lines.push(format!("target     {into}@{tip}").into());
        if let Imported::Already(taken) = imported {
            let (run, tick) = (&taken.run, taken.tick);
            lines.push(
                format!("ALREADY    in the history of {into}: {run}@{tick}; nothing was imported").into(),
            );
            return lines;
        }
        lines.extend(field_lines(&checked.fields));
        if let Some(refused) = &checked.refused {
            let violation = matches!(refused, ImportRefused::ContextViolation { .. });
            let words = if violation { "CONTEXT VIOLATION - IMPORT REJECTED" } else { "IMPORT REJECTED" };
            lines.push(Line::styled(Style::Bad, words));
            return lines;
        }
        match imported {
            Imported::Done { .. } if dry_run => {
                lines.push("MAY BE IMPORTED   nothing was written (dry run)".into());
            }
            Imported::Done { marker, record } => {
                let (tick, before, id) = (tick_of(record), tick_of(marker), record.id().short());
                let behind = format!("behind its marker run.cherrypick at tick {before}");
                lines.push(format!("IMPORTED   as {into}@{tick}, {behind}   hash {id}").into());
            }
            Imported::Refused(_) | Imported::Already(_) => {}
        }
        lines.extend(checked.advisory.iter().map(|name| {
            let name = quote::escape(name);
            let what = "is absent in the target (told, and no reason to refuse)";
            Line::styled(Style::Warn, format!("WARN       advisory dependency {name} {what}"))
        }));
        lines
    }

    fn end(&self) -> End {
        if matches!(self.reply.imported, Imported::Already(_)) {
            return End::No;
        }
        self.reply.pick.checked.refused.as_ref().map_or(End::Answered, |refused| End::Problem(refused.code()))
    }
}

impl CherrypickAnswer<'_> {
    /// Returns why the transition was not imported, with help; `None` if it was.
    pub fn problem(&self) -> Option<Problem> {
        if matches!(self.reply.imported, Imported::Already(_)) {
            return None;
        }
        let problem = self.refused(self.reply.pick.checked.refused.as_ref()?);
        let kept = if self.reply.dry_run { "" } else { "; the refusal is kept beside the run" };
        Some(problem.note(format!("no state was modified and no transition was committed{kept}")))
    }

    fn refused(&self, refused: &ImportRefused) -> Problem {
        let (run, before) = (self.reply.pick.run.as_str(), self.reply.pick.tick - 1);
        let mut failure = Problem::new(refused.code(), refused.to_string());
        match refused {
            ImportRefused::ContextViolation { .. } => {
                for field in self.reply.pick.checked.fields.iter().filter(|field| field.wrong.is_some()) {
                    let side = |value: &Option<Value>| {
                        value.as_ref().map_or_else(|| "(absent)".to_owned(), Value::to_string)
                    };
                    let sides = format!("source {}   target {}", side(&field.source), side(&field.target));
                    failure = failure.at(&field.name, sides);
                }
                failure = failure.note("risk: SILENT_DISASTER_PREVENTED");
                let is_open = |field: &FieldCheck| field.wrong == Some(FieldFault::Redacted);
                if self.reply.pick.checked.fields.iter().any(is_open) {
                    failure = failure.note(
                        "a redacted value is compared by its tag, and a short one has none: compare another field, or give \
                        this one a rule of its own under `match` in the contract",
                    );
                }
                let wrong = || self.reply.pick.checked.fields.iter().filter(|field| field.wrong.is_some());
                // Only what is there can be set; a value of a tagged form is not written as it is read.
                let sets = |value: fn(&FieldCheck) -> &Option<Value>| -> Vec<String> {
                    let set = |field: &FieldCheck| Some(format!("{}={}", field.name, value(field).as_ref()?));
                    wrong()
                        .filter_map(set)
                        .filter(|set| !set.contains("\"$") && !marker::has_marker(set))
                        .collect()
                };
                let fork = |run: &str, from: &[&str], sets: &[String]| -> Vec<String> {
                    let argv =
                        ["dendrer", "fork", "--run", run, "--from"].into_iter().chain(from.iter().copied());
                    let sets = sets.iter().flat_map(|set| ["--set", set.as_str()]);
                    argv.chain(sets).map(str::to_owned).collect()
                };
                let (decide, write) = (sets(|field| &field.target), sets(|field| &field.source));
                let before = before.to_string();
                if !decide.is_empty() {
                    let mut argv = fork(run, &["tick", &before], &decide);
                    if self.reply.decided_breaks {
                        argv.extend([
                            "--although".to_owned(),
                            format!("to decide on what {} has", self.reply.into),
                        ]);
                    }
                    failure = failure.help(&argv.iter().map(String::as_str).collect::<Vec<_>>());
                }
                for field in wrong().filter(|field| field.target.is_none()) {
                    let value = field.source.as_ref().map_or_else(|| "a value".to_owned(), Value::to_string);
                    failure =
                        failure.note(format!("{} is absent in the target: write {value} there", field.name));
                }
                if write.is_empty() {
                    return failure;
                }
                let new = given_name(self.reply.into.as_str(), "-retry");
                let mut argv = fork(self.reply.into.as_str(), &["tip"], &write);
                argv.extend(["--as".to_owned(), new.clone()]);
                if self.reply.given_breaks {
                    argv.extend(["--although".to_owned(), format!("to have what {run} has")]);
                }
                failure
                    .note("decide again on what the target has, or give the target what the source had and retry")
                    .help(&argv.iter().map(String::as_str).collect::<Vec<_>>())
                    .help(&["dendrer", "cherrypick", &format!("{run}@{}", self.reply.pick.tick), "--into", &new])
            }
            ImportRefused::ContractsDiffer { .. } => {
                let failure = failure.note("fields were not compared; the version is checked first");
                let [source, target] = &self.reply.pick.checked.contracts;
                let named = |(name, version): &(Arc<str>, Arc<str>)| format!("{name}/{version}");
                match () {
                    // A side without a contract has nothing to compare.
                    () if source.0.is_empty() || target.0.is_empty() => failure,
                    () if source != target => {
                        failure.help(&["dendrer", "contract", "diff", &named(source), &named(target)])
                    }
                    // One name for two packs: each run says which it means.
                    () => {
                        let at = format!("{run}@{before}");
                        failure.help(&["dendrer", "contract", "diff", &at, self.reply.into.as_str()])
                    }
                }
            }
            ImportRefused::NoContext => {
                failure.note("record the run at stage 2 or 3: dendrer commit --run NEW --stage 2 --pack FILE")
            }
            ImportRefused::NotEnforced => {
                failure.note("record the target at stage 2: dendrer commit --run NEW --stage 2")
            }
            ImportRefused::NoContract(..) => {
                let failure =
                    failure.note("add the type to `contracts` of the pack, and record both runs under it");
                match self.reply.pick.checked.contracts[0].0.is_empty() {
                    // A run without a pack has no contract to show.
                    true => failure.help(&["dendrer", "reduce", run, "--pack", "FILE", "--as", "NEW"]),
                    false => failure.help(&["dendrer", "contract", "show", &format!("{run}@{before}")]),
                }
            }
            ImportRefused::Violates(_) => failure
                .note("decide again in the target, where what it would break can be seen")
                .help(&["dendrer", "contract", "check", self.reply.into.as_str()])
                .help(&["dendrer", "show", &format!("{run}@{}", self.reply.pick.tick)]),
            ImportRefused::DeadSupport(ids) => {
                let failure = failure.note("support it again in the target, or decide again there");
                let id = ids.first().map_or("", |id| &**id);
                failure.help(&["dendrer", "commitments", "why", self.reply.into.as_str(), id])
            }
            ImportRefused::HashUnderspecified { .. } | ImportRefused::AtTheDoor { .. } => failure,
        }
    }
}

fn tick_of(record: &Record) -> u64 {
    record.header().tick.unwrap_or(0)
}

fn field_lines(fields: &[FieldCheck]) -> Vec<Line> {
    let mut table = Table::new([("", Align::Left); 4]);
    fields.iter().for_each(|field| table.row(field_row(field)));
    let lines = table.whole().into_iter().skip(1).zip(fields);
    let style = |field: &FieldCheck| if field.wrong.is_some() { Style::Bad } else { Style::Good };
    lines.map(|(line, field)| Line::styled(style(field), line)).collect()
}

fn field_row(field: &FieldCheck) -> Vec<String> {
    let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let mark = if field.wrong.is_some() { "FAIL" } else { "OK" };
    let rule = match &field.wrong {
        Some(wrong) => quote::escape(&wrong.to_string()),
        None => quote::escape(&field.rule),
    };
    vec![
        mark.to_owned(),
        quote::escape(&field.name),
        format!("source {}   target {}", side(&field.source), side(&field.target)),
        rule,
    ]
}

document! {
    /// An import of one transition into another run
    pub object CherrypickDocument: "cherrypick" (answer: &CherrypickAnswer<'_>) {
        let answer = answer.reply;
        let checked = &answer.pick.checked;
        // A dry run wrote none of its records.
        let (before, made, kept) = match &answer.imported {
            _ if answer.dry_run => (None, None, None),
            Imported::Done { marker, record } => (Some(marker), Some(record), None),
            Imported::Refused(refusal) => (None, None, Some(refusal)),
            Imported::Already(_) => (None, None, None),
        };
        let taken = if let Imported::Already(taken) = &answer.imported { Some(taken) } else { None };
        let [of_source, of_target] = &checked.contracts;
        /// The run of the transition
        run: &RunName = &answer.pick.run,
        /// The tick of the transition
        tick: u64 = answer.pick.tick,
        /// The run that takes it in
        into: &RunName = &answer.into,
        /// The last tick of that run before the import
        target_tick: u64 = answer.tip,
        /// The contract of the type in the source
        source_contract: ContractName = ContractName::of(&of_source.0, &of_source.1),
        /// The contract of the type in the target
        target_contract: ContractName = ContractName::of(&of_target.0, &of_target.1),
        /// The context hash of the source
        hash: Option<Digest> = checked.hash,
        /// The required fields
        fields: Vec<CheckedField> = checked.fields.iter().map(CheckedField::of).collect(),
        /// The advisory dependencies that the target lacks
        advisory_missing: Vec<&str> = checked.advisory.iter().map(|name| &**name).collect(),
        /// Whether the transition may be imported
        allowed: bool = checked.refused.is_none() && taken.is_none(),
        /// The reason why it may not
        refused: Option<RefusedImport> = checked.refused.as_ref().map(RefusedImport::of),
        /// The result of the check in the words of the dendrer paper
        validation: ValidationObject = ValidationObject::of(checked.refused.as_ref()),
        /// The record of the history of the target that it is, if it is there already
        already: Option<TakenRecord> =
            taken.map(|taken| TakenRecord::of(taken.run.as_str(), taken.tick, taken.record)),
        /// The marker that was written
        marker: Option<MadeRecord> = before.map(MadeRecord::of),
        /// The transition that was written
        transition: Option<MadeRecord> = made.map(MadeRecord::of),
        /// The id of the refusal that was kept
        refusal: Option<Digest> = kept.map(|refusal| refusal.id()),
        /// Whether nothing was to be written
        dry_run: bool = answer.dry_run,
    }

    /// A contract
    object ContractName(of: &str, number: &str) {
        /// The name
        name: &str = of,
        /// The version
        version: &str = number,
    }

    /// A required field on both sides
    object CheckedField(field: &FieldCheck) {
        /// The name
        name: &str = &field.name,
        /// The rule
        rule: &str = &field.rule,
        /// The value of the source; null if it is missing
        source: Option<Value> = field.source.clone(),
        /// Whether the source has no value
        source_absent: bool = field.source.is_none(),
        /// The value of the target; null if it is missing
        target: Option<Value> = field.target.clone(),
        /// Whether the target has no value
        target_absent: bool = field.target.is_none(),
        /// Whether the field fits
        ok: bool = field.wrong.is_none(),
        /// The reason why it does not fit
        wrong: Option<String> = field.wrong.as_ref().map(ToString::to_string),
    }

    /// The reason why a transition may not be imported
    object RefusedImport(refused: &ImportRefused) {
        /// The code
        code: Code = refused.code(),
        /// The reason in one sentence
        message: String = refused.to_string(),
    }

    /// The result of a check in the words of the dendrer paper
    object ValidationObject(refused: Option<&ImportRefused>) {
        let violation = match refused {
            Some(ImportRefused::ContextViolation { type_name, fields }) => Some((type_name, fields)),
            _ => None,
        };
        /// The word for an import that may happen
        ok?: ["context_compatible"] = refused.is_none().then_some("context_compatible"),
        /// The word for the refusal
        error?: &str = refused.map(|refused| match refused {
            ImportRefused::ContextViolation { .. } => "context_violation",
            ImportRefused::HashUnderspecified { .. } => "hash_contract_mismatch",
            refused => refused.code().kind(),
        }),
        /// The reason of a hash that does not fit its contract
        reason?: &str = refused.and_then(|refused| {
            matches!(refused, ImportRefused::HashUnderspecified { .. }).then_some("hash_underspecified")
        }),
        /// The required fields that do not fit
        missing_deps?: Vec<&str> = violation.map(|(_, fields)| fields.iter().map(|name| &**name).collect()),
        /// The type of the intent
        intent?: &str = violation.map(|(type_name, _)| type_name.as_str()),
        /// The risk that the refusal prevents
        risk?: &str = violation.map(|_| "silent_disaster_prevented"),
    }

    /// A record of the history of the target
    object TakenRecord(name: &str, at: u64, id: Digest) {
        /// The run
        run: &str = name,
        /// The tick
        tick: u64 = at,
        /// The id of the record
        record: Digest = id,
    }

    /// A record that was written
    object MadeRecord(record: &Record) {
        /// The id
        id: Digest = record.id(),
        /// The tick
        tick: Option<u64> = record.header().tick,
    }
}
