//! A transition of one run that is imported into another: the contract, the required fields on both sides, and the outcome.

use std::sync::Arc;

use dendrer::cherrypick::Imported;
use dendrer::kernel::contract::{FieldCheck, ImportRefused};
use dendrer::kernel::step::Pick;
use dendrer_object::record::Record;
use dendrer_object::{RunName, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::{count, document, quote};

/// An import of a transition, or its refusal.
#[derive(Debug, Clone, Copy)]
pub struct CherrypickAnswer<'p> {
    /// The transition, and what the check of its contract found.
    pub pick: &'p Pick,
    /// The run that takes it in.
    pub into: &'p RunName,
    /// The last tick of that run before the import.
    pub tip: u64,
    /// The records that were made.
    pub imported: &'p Imported,
    /// Whether the context hash is printed in full.
    pub show_hash: bool,
    /// Whether nothing was to be written.
    pub dry_run: bool,
}

impl Answer for CherrypickAnswer<'_> {
    fn document(&self) -> Value {
        let checked = &self.pick.checked;
        let contract = |(name, version): &(Arc<str>, Arc<str>)| {
            Value::record([("name", Value::from(&**name)), ("version", Value::from(&**version))])
        };
        let record = |record: Option<&Record>| {
            record.map_or(Value::Null, |record| {
                Value::record([("id", Value::from(record.id())), ("tick", Value::from(record.header().tick))])
            })
        };
        // What a dry run made is nowhere.
        let (marker, transition, refusal) = match self.imported {
            _ if self.dry_run => (None, None, None),
            Imported::Done { marker, record } => (Some(marker), Some(record), None),
            Imported::Refused(refusal) => (None, None, Some(refusal)),
            Imported::Already(_) => (None, None, None),
        };
        let already = match self.imported {
            Imported::Already(taken) => Value::record([
                ("run", Value::from(taken.run.as_str())),
                ("tick", Value::from(taken.tick)),
                ("record", Value::from(taken.record)),
            ]),
            _ => Value::Null,
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
                ("into", Value::from(self.into.as_str())),
                ("target_tick", Value::from(self.tip)),
                ("source_contract", contract(source)),
                ("target_contract", contract(target)),
                ("hash", Value::from(checked.hash)),
                ("fields", Value::array(checked.fields.iter().map(field_json))),
                ("advisory_missing", Value::array(checked.advisory.iter().map(|name| Value::from(&**name)))),
                ("allowed", Value::from(checked.refused.is_none() && already == Value::Null)),
                ("refused", refused),
                ("validation", self.validation()),
                ("already", already),
                ("marker", record(marker)),
                ("transition", record(transition)),
                ("refusal", refusal.map_or(Value::Null, |refusal| Value::from(refusal.id()))),
                ("dry_run", Value::from(self.dry_run)),
            ],
        )
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let CherrypickAnswer { pick, into, tip, imported, show_hash, dry_run } = *self;
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
        lines.extend(field_lines(&checked.fields, page.width));
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
        if matches!(self.imported, Imported::Already(_)) {
            return End::No;
        }
        self.pick.checked.refused.as_ref().map_or(End::Answered, |refused| End::Problem(refused.code()))
    }
}

impl CherrypickAnswer<'_> {
    /// Returns why the transition was not imported, with help; `None` if it was.
    pub fn problem(&self) -> Option<Problem> {
        if matches!(self.imported, Imported::Already(_)) {
            return None;
        }
        let problem = self.refused(self.pick.checked.refused.as_ref()?);
        let kept = if self.dry_run { "" } else { "; the refusal is kept beside the run" };
        Some(problem.note(format!("no state was modified and no transition was committed{kept}")))
    }

    fn refused(&self, refused: &ImportRefused) -> Problem {
        let (run, before) = (self.pick.run.as_str(), self.pick.tick - 1);
        let mut failure = Problem::new(refused.code(), refused.to_string());
        match refused {
            ImportRefused::ContextViolation { .. } => {
                for field in self.pick.checked.fields.iter().filter(|field| field.wrong.is_some()) {
                    let side = |value: &Option<Value>| {
                        value.as_ref().map_or_else(|| "(absent)".to_owned(), Value::to_string)
                    };
                    let sides = format!("source {}   target {}", side(&field.source), side(&field.target));
                    failure = failure.at(&field.name, sides);
                }
                failure = failure.note("risk: SILENT_DISASTER_PREVENTED");
                let wrong = || self.pick.checked.fields.iter().filter(|field| field.wrong.is_some());
                // Only what is there can be set; a value of a tagged form is not written as it is read.
                let sets = |value: fn(&FieldCheck) -> &Option<Value>| -> Vec<String> {
                    let set = |field: &FieldCheck| Some(format!("{}={}", field.name, value(field).as_ref()?));
                    wrong().filter_map(set).filter(|set| !set.contains("\"$")).collect()
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
                    let argv = fork(run, &["tick", &before], &decide);
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
                let new = format!("{}-retry", self.into);
                let mut argv = fork(self.into.as_str(), &["tip"], &write);
                argv.extend(["--as".to_owned(), new.clone()]);
                failure
                    .note("decide again on what the target has, or give the target what the source had and retry")
                    .help(&argv.iter().map(String::as_str).collect::<Vec<_>>())
                    .help(&["dendrer", "cherrypick", &format!("{run}@{}", self.pick.tick), "--into", &new])
            }
            ImportRefused::ContractsDiffer { .. } => {
                let failure = failure.note("fields were not compared; the version is checked first");
                let [source, target] = &self.pick.checked.contracts;
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
                        failure.help(&["dendrer", "contract", "diff", &at, self.into.as_str()])
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
                .help(&["dendrer", "contract", "check", self.into.as_str()])
                .help(&["dendrer", "show", &format!("{run}@{}", self.pick.tick)]),
            ImportRefused::DeadSupport(ids) => {
                let failure = failure.note("support it again in the target, or decide again there");
                let id = ids.first().map_or("", |id| &**id);
                failure.help(&["dendrer", "commitments", "why", self.into.as_str(), id])
            }
            ImportRefused::HashUnderspecified { .. } | ImportRefused::AtTheDoor { .. } => failure,
        }
    }

    /// The answer in the shape of `validate_import` (dendrer paper, appendix E.2).
    fn validation(&self) -> Value {
        let risk = ("risk", Value::from("silent_disaster_prevented"));
        match &self.pick.checked.refused {
            None => Value::record([("ok", Value::from("context_compatible"))]),
            Some(ImportRefused::ContextViolation { type_name, fields }) => Value::record([
                ("error", Value::from("context_violation")),
                ("missing_deps", Value::array(fields.iter().map(|name| Value::from(&**name)))),
                ("intent", Value::from(type_name.as_str())),
                risk,
            ]),
            Some(ImportRefused::HashUnderspecified { .. }) => Value::record([
                ("error", Value::from("hash_contract_mismatch")),
                ("reason", Value::from("hash_underspecified")),
            ]),
            Some(refused) => {
                let kind = refused.code().kind();
                Value::record([("error", Value::from(kind))])
            }
        }
    }
}

fn tick_of(record: &Record) -> u64 {
    record.header().tick.unwrap_or(0)
}

fn field_lines(fields: &[FieldCheck], width: Option<usize>) -> Vec<Line> {
    let mut table = Table::new([("", Align::Left); 4]);
    fields.iter().for_each(|field| table.row(field_row(field)));
    let lines = table.lines(width).0.into_iter().skip(1).zip(fields);
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
        ("wrong", Value::from(field.wrong.as_ref().map(ToString::to_string))),
    ])
}
