//! A state or one value of it, and the difference between two states.

use dendrer::ask::state::{StateAnswer, StateDifference};
use dendrer::kernel::predicate::Window;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style, pretty};
use crate::change::change_json;
use crate::{RECORDED, count, document};

fn window_word(window: Window) -> &'static str {
    match window {
        Window::Before => "before",
        Window::After => "after",
    }
}

impl Answer for StateAnswer {
    fn document(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("tick", Value::from(self.tick)),
            ("window", Value::from(window_word(self.window))),
            ("path", Value::from(self.path.as_str())),
            ("state_root", Value::from(self.root)),
            ("value", self.value.clone()),
            ("certainty", Value::from(if self.derived { "derived" } else { RECORDED })),
        ];
        document("state", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let lines = pretty(&self.value, 0, self.depth);
        let root = self
            .path
            .as_str()
            .is_empty()
            .then(|| Line::note(format!("state root {}{}", self.root, page.of_run(&self.run))));
        lines.iter().map(|line| page.fit(line)).chain(root).collect()
    }
}

impl Answer for StateDifference {
    fn document(&self) -> Value {
        let place =
            |(run, tick): &(_, u64)| [("run", Value::from(format!("{run}"))), ("tick", Value::from(*tick))];
        let members = [
            ("base", Value::record(place(&self.base))),
            ("window", Value::from(window_word(self.window))),
            ("path", Value::from(self.path.as_str())),
            ("items", Value::array(self.changes.iter().map(change_json))),
            ("certainty", Value::from(RECORDED)),
        ];
        document("state-difference", place(&self.place).into_iter().chain(members))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let ((run, tick), (base, from)) = (&self.place, &self.base);
        let number = count(self.changes.len() as u64, "difference", "differences");
        let changes = self.changes.iter().map(|change| page.change(change).paint(Style::Warn));
        let read = if page.is_usual { String::new() } else { page.read_from() };
        let sum = format!("{number} from {base}@{from} to {run}@{tick}{read}");
        changes.chain([sum.into()]).collect()
    }
}
