//! A state or one value of it, and the difference between two states.

use dendrer::ask::state::question::StateReply;
use dendrer::ask::state::{CutLimits, StateAnswer, StateDifference};
use dendrer::kernel::predicate::Window;
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page};
use crate::certainty::{Certainty, Places, UnknownPlace, unknown_line, unknown_places, unknown_words};
use crate::change::{ChangeObject, ShownChange};
use crate::text::pretty;
use crate::{count, quote};

document! {
    /// A state, or a part of it
    pub object StateDocument: "state" reads (answer: &StateAnswer) {
        let certainty = if answer.derived { Certainty::Derived } else { Certainty::Recorded };
        /// The run
        run: &RunName = &answer.run,
        /// The agent, if the state is that along its causal ancestors
        agent: Option<&str> = answer.agent.as_deref(),
        /// The tick
        tick: u64 = answer.tick,
        /// The side of the tick
        window: Window = answer.window,
        /// The place; empty for the whole state
        path: &Pointer = &answer.path,
        /// The root of the whole state
        state_root: Digest = answer.root,
        /// The value; null if the place is unknown and nothing is there
        value: Value = answer.limits.apply(&answer.value),
        /// The certainty
        certainty: ["recorded" | "derived" | "unavailable"] =
            certainty.unless(!answer.unknown.is_empty()).as_str(),
        /// The unknown places that the value meets; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&answer.unknown),
    }

    /// The difference between two states
    pub object DifferenceDocument: "state-difference" reads (found: &StateDifference) {
        let certainty = Certainty::Recorded.unless(!found.unknown.is_empty());
        ..ComparedPlace = ComparedPlace::of(&found.place),
        /// The state that it is compared with
        base: ComparedPlace = ComparedPlace::of(&found.base),
        /// The side of the ticks
        window: Window = found.window,
        /// The only place that is compared; empty for the whole state
        path: &Pointer = &found.path,
        /// The places that differ, the base as the side before
        items: Vec<ChangeObject> = found.changes.iter().map(ChangeObject::of).collect(),
        /// The certainty
        certainty: ["recorded" | "unavailable"] = certainty.as_str(),
        /// The unknown places that the comparison meets; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&found.unknown),
    }

    /// A state of a comparison
    object ComparedPlace(place: &(RunName, u64)) {
        /// The run
        run: &RunName = &place.0,
        /// The tick
        tick: u64 = place.1,
    }
}

/// A place that is unknown is an answer that is not there. A whole state lists its unknown places like its other members.
fn end_of(path: &Pointer, unknown: &Places) -> End {
    if unknown.is_empty() || path.as_str().is_empty() { End::Answered } else { End::Unknown }
}

impl Answer for StateReply {
    fn document(&self) -> Value {
        match self {
            StateReply::State(answer) => StateDocument::of(answer).into(),
            StateReply::Difference(found) => DifferenceDocument::of(found).into(),
        }
    }

    fn end(&self) -> End {
        match self {
            StateReply::State(StateAnswer { path, unknown, .. })
            | StateReply::Difference(StateDifference { path, unknown, .. }) => end_of(path, unknown),
        }
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        match self {
            StateReply::State(answer) => state_lines(answer, page),
            StateReply::Difference(found) => difference_lines(found, page),
        }
    }
}

fn state_lines(answer: &StateAnswer, page: &Page) -> Vec<Line> {
    // Nothing is at the place, and what should be there is unknown.
    let is_missing = answer.value == Value::Null && !answer.unknown.is_empty();
    // Deeper values are a number of members, which is shorter than a mark.
    let shown = CutLimits { depth: None, ..answer.limits }.apply(&answer.value);
    let depth = answer.limits.depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
    let lines = if is_missing { Vec::new() } else { pretty(&shown, 0, depth) };
    let root = answer.path.as_str().is_empty().then(|| {
        let of = answer.agent.as_ref().map(|agent| {
            format!(", of {} at tick {} along its causal ancestors", quote::name(agent), answer.tick)
        });
        let of = of.unwrap_or_default();
        Line::note(format!("state root {}{}{of}", answer.root, page.of_run(&answer.run)))
    });
    let run = answer.run.as_str();
    let bare = answer
        .is_bare
        .then(|| Line::note(format!("note: no pack made a state; counters: dendrer state {run} counters")));
    // The answer is valid JSON: unknown places are notes on stderr, unless nothing else is known.
    let unknown = unknown_words(&answer.unknown).map(|words| {
        let line = format!("UNKNOWN    {words}");
        if is_missing { Line::from(line) } else { Line::note(line) }
    });
    lines.into_iter().map(Line::from).chain(unknown).chain(bare).chain(root).collect()
}

fn difference_lines(found: &StateDifference, page: &Page) -> Vec<Line> {
    let ((run, tick), (base, from)) = (&found.place, &found.base);
    let number = count(found.changes.len() as u64, "difference", "differences");
    let rev = format!("{run}@{tick}");
    let whole = |path: &Pointer| {
        ["dendrer", "state", &rev, "--path", &quote::path(path), "--full"].map(str::to_owned).to_vec()
    };
    let changes = found.changes.iter().map(|one| ShownChange::of_write(one, whole(&one.path)));
    let changes = page.changes(&changes.collect::<Vec<_>>(), 0).into_iter();
    let read = if page.is_usual { String::new() } else { page.read_from() };
    let sum = format!("{number} from {base}@{from} to {run}@{tick}{read}");
    changes.chain(unknown_line(&found.unknown)).chain([sum.into()]).collect()
}
