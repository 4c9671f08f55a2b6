//! A state or one value of it, and the difference between two states.

use dendrer::ask::state::{StateAnswer, StateDifference};
use dendrer::kernel::predicate::Window;
use dendrer_object::{Pointer, Value};

use crate::answer::{Answer, End, Line, Page, Style, pretty};
use crate::certainty::{Certainty, Places, unknown_line, unknown_member};
use crate::change::change_json;
use crate::{count, document, quote};

fn window_word(window: Window) -> &'static str {
    match window {
        Window::Before => "before",
        Window::After => "after",
    }
}

/// A place that is unknown is an answer that is not there. A whole state lists its unknown places like its other members.
fn end_of(path: &Pointer, unknown: &Places) -> End {
    if unknown.is_empty() || path.as_str().is_empty() { End::Answered } else { End::Unknown }
}

impl Answer for StateAnswer {
    fn document(&self) -> Value {
        let certainty = if self.derived { Certainty::Derived } else { Certainty::Recorded };
        let certainty = certainty.unless(!self.unknown.is_empty());
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("agent", Value::from(self.agent.as_deref())),
            ("tick", Value::from(self.tick)),
            ("window", Value::from(window_word(self.window))),
            ("path", Value::from(self.path.written())),
            ("state_root", Value::from(self.root)),
            ("value", self.value.clone()),
            ("certainty", Value::from(certainty)),
        ];
        document("state", members.into_iter().chain(unknown_member(&self.unknown)))
    }

    fn end(&self) -> End {
        end_of(&self.path, &self.unknown)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        // Nothing is at the place, and what should be there is unknown.
        let is_missing = self.value == Value::Null && !self.unknown.is_empty();
        let lines = if is_missing { Vec::new() } else { pretty(&self.value, 0, self.depth) };
        let root = self.path.as_str().is_empty().then(|| {
            let of = self.agent.as_ref().map(|agent| {
                format!(", of {} at tick {} along its causal ancestors", quote::escape(agent), self.tick)
            });
            let of = of.unwrap_or_default();
            Line::note(format!("state root {}{}{of}", self.root, page.of_run(&self.run)))
        });
        let lines = lines.iter().map(|line| page.fit(line));
        lines.chain(unknown_line(&self.unknown)).chain(root).collect()
    }
}

impl Answer for StateDifference {
    fn document(&self) -> Value {
        let place =
            |(run, tick): &(_, u64)| [("run", Value::from(format!("{run}"))), ("tick", Value::from(*tick))];
        let members = [
            ("base", Value::record(place(&self.base))),
            ("window", Value::from(window_word(self.window))),
            ("path", Value::from(self.path.written())),
            ("items", Value::array(self.changes.iter().map(change_json))),
            ("certainty", Value::from(Certainty::Recorded.unless(!self.unknown.is_empty()))),
        ];
        let members = place(&self.place).into_iter().chain(members);
        document("state-difference", members.chain(unknown_member(&self.unknown)))
    }

    fn end(&self) -> End {
        end_of(&self.path, &self.unknown)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let ((run, tick), (base, from)) = (&self.place, &self.base);
        let number = count(self.changes.len() as u64, "difference", "differences");
        let changes = self.changes.iter().map(|change| page.change(change).paint(Style::Warn));
        let read = if page.is_usual { String::new() } else { page.read_from() };
        let sum = format!("{number} from {base}@{from} to {run}@{tick}{read}");
        changes.chain(unknown_line(&self.unknown)).chain([sum.into()]).collect()
    }
}
