//! Asks a question of every run of an export: by the kernel's evaluator, over typed columns where these have all that it reads,
//! else over states that are folded from keyframes and deltas.
//!
//! Rule: rows come in the order of `runs/`, each tick of each run once, or there is no answer.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use dendrer::ask::fleet::{
    FleetExport, FleetQuestion, FleetReply, FleetRow, FleetRun, NotExported, RowJudge, RunCourse, RunLine,
    WatchedFold,
};
use dendrer_kernel::expr::Expr;
use dendrer_kernel::names::COUNTERS;
use dendrer_kernel::predicate::Predicate;
use dendrer_object::{Digest, Object, Pointer, Value};

use crate::columns::Column;
use crate::error::FleetError;
use crate::read::{ExportedRun, FleetReader};
use crate::rows::{COUNTERS_MARK, HIDDEN, WHOLE, cell_at, int_at, json_of, text_at, tick_schema};

/// Asks a question of every run.
///
/// # Errors
///
/// An error if the export cannot answer the question, or is not whole.
pub fn ask(export: &FleetReader, question: &FleetQuestion) -> Result<FleetReply, FleetError> {
    let plain = question.predicate();
    let runs = export.runs()?;
    let plan = Plan::of(export, question, &runs)?;
    match plain {
        // The pack of a run may define what the expression names.
        Err(NotExported::Expr(_)) if !plan.predicates.is_empty() => {}
        plain => drop(plain?),
    }
    let mut done = Done { waiting: plan.forks.clone(), ..Done::default() };
    plan.read(export, &mut done)?;
    let mut answers: Vec<FleetRun> = done.answers;
    answers.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(FleetReply {
        path: if plan.by_columns { "columns" } else { "state" },
        export: FleetExport {
            store: export.manifest.store.clone(),
            size: export.manifest.size,
            manifest: export.digest,
        },
        rows: export.manifest.rows,
        outside: runs.len() as u64 - answers.len() as u64,
        runs: answers,
    })
}

/// The predicates of an export, and the runs that each is asked of.
struct Plan<'e> {
    question: &'e FleetQuestion,
    runs: &'e [ExportedRun],
    numbers: BTreeMap<&'e str, usize>,
    /// Each meaning of the question: packs give one text several.
    predicates: Vec<Predicate>,
    /// For each run the predicate that it is asked, or why it has none.
    own: Vec<Result<usize, String>>,
    /// For each run the predicates that its rows are judged by: its own, and those of its forks.
    judged: Vec<Vec<usize>>,
    /// For each run the number of runs below it that are answered by its verdicts.
    forks: Vec<usize>,
    columns: Vec<&'e Column>,
    by_columns: bool,
}

/// Verdicts and answers while rows are read.
#[derive(Default)]
struct Done {
    /// The verdicts of runs that others were forked from, until the last of these is answered.
    courses: BTreeMap<(usize, usize), RunCourse>,
    waiting: Vec<usize>,
    answers: Vec<FleetRun>,
}

/// The file of the runs, in messages.
const RUNS: &str = "runs/00000.parquet";

impl<'e> Plan<'e> {
    fn of(
        export: &'e FleetReader,
        question: &'e FleetQuestion,
        runs: &'e [ExportedRun],
    ) -> Result<Plan<'e>, FleetError> {
        let mut numbers = BTreeMap::new();
        let mut packs: BTreeMap<Option<Digest>, Result<usize, String>> = BTreeMap::new();
        let (mut predicates, mut own): (Vec<Predicate>, Vec<_>) = (Vec::new(), Vec::new());
        for (number, run) in runs.iter().enumerate() {
            if numbers.insert(run.name.as_str(), number).is_some() {
                return Err(FleetError::damaged(RUNS, format!("{} is there twice", run.name)));
            }
            let bound = run.pack.as_ref();
            let key =
                bound.map(|(value, rules)| Digest::of_parts(&[&value.digest().0, &rules.to_be_bytes()]));
            let found = packs.entry(key).or_insert_with(|| {
                let predicate = question.under(bound)?;
                let same = predicates.iter().position(|known| known.digest() == predicate.digest());
                Ok(same.unwrap_or_else(|| {
                    predicates.push(predicate);
                    predicates.len() - 1
                }))
            });
            own.push(found.clone());
        }
        let judged = own.iter().map(|own| own.iter().copied().collect()).collect();
        let forks = vec![0; runs.len()];
        let mut plan = Plan {
            question,
            runs,
            numbers,
            predicates,
            own,
            judged,
            forks,
            columns: Vec::new(),
            by_columns: false,
        };
        plan.add_forks()?;
        plan.choose_columns(export)?;
        Ok(plan)
    }

    /// Has every run that others were forked from judged by the predicates of these as well.
    fn add_forks(&mut self) -> Result<(), FleetError> {
        for (number, run) in self.runs.iter().enumerate() {
            let mut above = (number, run);
            while let Some(parent) = &above.1.parent {
                let place = self.numbers.get(parent.as_str()).copied();
                let fits = place.filter(|place| {
                    let found = &self.runs[*place];
                    // Runs are in the order in which they began, so this ends.
                    *place < above.0
                        && found.first < above.1.first
                        && above.1.first <= found.first.saturating_add(found.ticks)
                });
                let Some(place) = fits else {
                    let why = format!("{} is no fork of {parent} in this export", above.1.name);
                    return Err(FleetError::damaged(RUNS, why));
                };
                if let Ok(predicate) = self.own[number]
                    && !self.judged[place].contains(&predicate)
                {
                    self.judged[place].push(predicate);
                }
                self.forks[place] += 1;
                above = (place, &self.runs[place]);
            }
        }
        Ok(())
    }

    /// Chooses the columns that are read, and whether they have, in every row, all that is asked of the state. Refuses counters
    /// that are no column.
    fn choose_columns(&mut self, export: &'e FleetReader) -> Result<(), FleetError> {
        let columns = &export.manifest.columns;
        let exprs = self.predicates.iter().flat_map(Predicate::exprs);
        let counted: Vec<&str> =
            exprs.flat_map(Expr::counters_read).filter(|name| *name != VERSION).collect();
        let has = |name: &&str| columns.iter().any(|column| column.counter().as_deref() == Some(*name));
        if let Some(name) = counted.iter().find(|name| !has(name)) {
            return Err(NotExported::Counter((*name).to_owned()).into());
        }
        let places = self.predicates.iter().flat_map(|predicate| predicate.read_set());
        let places: Vec<&Pointer> = places.filter(|place| !is_counter(place)).collect();
        let is_full =
            |place: &&&Pointer| columns.iter().any(|column| column.place == ***place && column.nulls == 0);
        self.by_columns =
            !self.predicates.is_empty() && places.iter().filter(is_full).count() == places.len();
        let is_read = |column: &&Column| match column.counter() {
            Some(name) => counted.contains(&name.as_str()),
            None => self.by_columns && places.contains(&&column.place),
        };
        self.columns = columns.iter().filter(is_read).collect();
        Ok(())
    }

    /// Reads all rows, and answers each run when its last row is judged.
    fn read(&self, export: &FleetReader, done: &mut Done) -> Result<(), FleetError> {
        let schema = tick_schema(&export.manifest);
        let names: Vec<String> = self.columns.iter().map(|column| column.name()).collect();
        let mut wanted = vec!["run", "tick", "unknown"];
        if !self.by_columns {
            wanted.extend(["delta", "keyframe"]);
        }
        wanted.extend(names.iter().map(String::as_str));
        let mut number = 0;
        self.skip_empty(&mut number, done);
        let mut open: Option<OpenRun<'_>> = None;
        let mut last = "ticks";
        for file in export.files("ticks") {
            last = &file.file;
            export.batches(file, &schema, &wanted, &mut |batch| {
                let damaged = |why: String| FleetError::damaged(&file.file, why);
                for row in 0..batch.num_rows() {
                    let run = self.runs.get(number).ok_or_else(|| damaged("it has rows of no run".into()))?;
                    let now = open.get_or_insert_with(|| OpenRun::new(self, number));
                    let name = text_at(batch, "run", row).map_err(damaged)?.unwrap_or_default();
                    let tick = int_at(batch, "tick", row).map_err(damaged)?.unwrap_or(-1);
                    if name != run.name.as_str() || u64::try_from(tick) != Ok(now.next) {
                        let due = format!("{} at tick {}", run.name, now.next);
                        return Err(damaged(format!("it has {name} at tick {tick} where {due} is due")));
                    }
                    now.row(self, batch, row)
                        .map_err(|why| damaged(format!("{name} at tick {tick}: {why}")))?;
                    if now.next == run.first + run.ticks {
                        self.answer(number, open.take().map(OpenRun::finish).unwrap_or_default(), done);
                        number += 1;
                        self.skip_empty(&mut number, done);
                    }
                }
                Ok(())
            })?;
        }
        match self.runs.get(number) {
            Some(run) => Err(FleetError::damaged(last, format!("rows of {} are missing", run.name))),
            None => Ok(()),
        }
    }

    /// Answers runs without own ticks, which have no rows.
    fn skip_empty(&self, number: &mut usize, done: &mut Done) {
        while self.runs.get(*number).is_some_and(|run| run.ticks == 0) {
            self.answer(*number, Vec::new(), done);
            *number += 1;
        }
    }

    fn answer(&self, number: usize, courses: Vec<(usize, RunCourse)>, done: &mut Done) {
        let run = &self.runs[number];
        done.courses.extend(courses.into_iter().map(|(predicate, course)| ((number, predicate), course)));
        match &self.own[number] {
            Err(why) => {
                let from = self.question.from.unwrap_or(0);
                done.answers.push(FleetRun::unjudged(&run.name, from, why.clone(), Vec::new()));
            }
            Ok(predicate) => {
                let line = self.line(number, *predicate, done);
                let asked = &self.predicates[*predicate];
                let answer = line.answer(&run.name, asked, self.question, &run.certainty);
                done.answers.extend(answer);
            }
        }
        // A run above is done with its last fork.
        let mut above = run;
        while let Some(parent) = &above.parent {
            let place = self.numbers[parent.as_str()];
            done.waiting[place] -= 1;
            if done.waiting[place] == 0 {
                self.forget(place, done);
            }
            above = &self.runs[place];
        }
        if done.waiting[number] == 0 {
            self.forget(number, done);
        }
    }

    fn forget(&self, number: usize, done: &mut Done) {
        self.judged[number].iter().for_each(|predicate| drop(done.courses.remove(&(number, *predicate))));
    }

    /// The parts of a run, those of the runs that it was forked from first.
    fn line<'d>(&self, number: usize, predicate: usize, done: &'d Done) -> RunLine<'d> {
        let mut parts = Vec::new();
        let (mut at, mut end) = (number, u64::MAX);
        loop {
            let run = &self.runs[at];
            parts.extend(done.courses.get(&(at, predicate)).map(|course| (course, end)));
            let Some(parent) = &run.parent else { break };
            end = end.min(run.first - 1);
            at = self.numbers[parent.as_str()];
        }
        parts.reverse();
        RunLine::new(parts)
    }
}

/// The counter that is the same in every row.
const VERSION: &str = "version";

fn is_counter(place: &Pointer) -> bool {
    place.tokens().next().as_deref() == Some(COUNTERS)
}

/// A run whose rows are being read.
struct OpenRun<'p> {
    next: u64,
    judges: Vec<(usize, RowJudge<'p>, WatchedFold, Option<Value>)>,
    /// The typed columns and marks of the row before.
    before: Option<(Vec<Option<Value>>, Option<String>)>,
}

impl<'p> OpenRun<'p> {
    fn new(plan: &'p Plan<'_>, number: usize) -> OpenRun<'p> {
        let first = plan.runs[number].first;
        let judge = |predicate: &usize| {
            let asked = &plan.predicates[*predicate];
            (*predicate, RowJudge::new(asked, first), WatchedFold::of(asked), None)
        };
        OpenRun { next: first, judges: plan.judged[number].iter().map(judge).collect(), before: None }
    }

    fn finish(self) -> Vec<(usize, RunCourse)> {
        self.judges.into_iter().map(|(predicate, judge, ..)| (predicate, judge.finish())).collect()
    }

    fn row(&mut self, plan: &Plan<'_>, batch: &RecordBatch, row: usize) -> Result<(), String> {
        self.next += 1;
        let marks_text = text_at(batch, "unknown", row)?;
        let marks = marks_text.map(|text| json_of(text, "unknown")).transpose()?;
        let is_closed = marks.as_ref().is_some_and(|marks| marks.get(WHOLE).is_some());
        let cells = plan.columns.iter().map(|column| cell_at(batch, column, row));
        let cells = cells.collect::<Result<Vec<_>, String>>()?;
        let now = (cells, marks_text.map(str::to_owned));
        let is_same = self.before.as_ref() == Some(&now);
        let mark = marks.as_ref().and_then(|marks| marks.get(COUNTERS_MARK));
        let counters = counters_of(plan, &now.0, mark);
        let (delta, keyframe) = match plan.by_columns {
            true => (None, None),
            false => (text_at(batch, "delta", row)?, text_at(batch, "keyframe", row)?),
        };
        let delta = delta.filter(|_| !is_closed).map(|text| json_of(text, "delta")).transpose()?;
        let keyframe = keyframe.filter(|_| !is_closed).map(|text| json_of(text, "keyframe")).transpose()?;
        for (number, judge, fold, state) in &mut self.judges {
            let predicate = &plan.predicates[*number];
            let is_hidden = mark.and_then(|mark| mark.get(HIDDEN)?.as_array()).is_some_and(|hidden| {
                let is_read = |name: &str| predicate.exprs().any(|expr| expr.reads_counter(name));
                hidden.iter().filter_map(Value::as_str).any(is_read)
            });
            let mut is_moved = !is_same;
            if is_closed || is_hidden {
                judge.row(FleetRow::Closed).map_err(|error| error.to_string())?;
                continue;
            }
            if plan.by_columns {
                if is_moved {
                    *state = Some(state_of(&plan.columns, &now.0));
                }
            } else if let Some(keyframe) = &keyframe {
                *state = Some(keyframe.clone());
                is_moved = true;
            } else {
                let (Some(state), Some(delta)) = (state.as_mut(), &delta) else {
                    return Err("it has neither a keyframe nor a change of the row before".to_owned());
                };
                is_moved |= fold.apply(state, delta).map_err(|error| error.to_string())?;
            }
            let seen = match (is_moved, state.as_ref()) {
                (true, Some(state)) => {
                    FleetRow::Known(state, predicate.reads_counters().then_some(&counters))
                }
                _ => FleetRow::Same,
            };
            judge.row(seen).map_err(|error| error.to_string())?;
        }
        self.before = Some(now);
        Ok(())
    }
}

/// The counters as expressions see them.
fn counters_of(plan: &Plan<'_>, cells: &[Option<Value>], mark: Option<&Value>) -> Value {
    if let Some(mark) = mark.and_then(Value::as_object) {
        let mut members = mark.clone();
        members.remove(HIDDEN);
        return Value::Object(members);
    }
    let mut members = Object::default();
    members.set(VERSION, Value::from("counters/1"));
    for (column, cell) in plan.columns.iter().zip(cells) {
        if let (true, Some(cell)) = (is_counter(&column.place), cell) {
            set(&mut members, column.place.tokens().skip(1).map(|name| name.into_owned()).collect(), cell);
        }
    }
    Value::Object(members)
}

/// The part of a state that typed columns have.
fn state_of(columns: &[&Column], cells: &[Option<Value>]) -> Value {
    let mut members = Object::default();
    for (column, cell) in columns.iter().zip(cells) {
        if let (false, Some(cell)) = (is_counter(&column.place), cell) {
            set(&mut members, column.place.tokens().map(|name| name.into_owned()).collect(), cell);
        }
    }
    Value::Object(members)
}

/// Sets a value at a place, and makes the objects above it.
fn set(members: &mut Object, names: Vec<String>, value: &Value) {
    let Some((first, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        members.set(first, value.clone());
        return;
    }
    let mut below = members.get(first).and_then(Value::as_object).cloned().unwrap_or_default();
    set(&mut below, rest.to_vec(), value);
    members.set(first, Value::Object(below));
}
