//! Problems as lines and as `dendrer.error/1`.

use dendrer_object::Value;

pub use dendrer::problem::{Problem, READS_ONLY, in_store, no_pack, replay};

use crate::quote::shell;
use crate::{codes, document, quote};

/// A problem as it is shown.
pub trait ShownProblem {
    /// Returns the exit code of a command that ends with this problem.
    fn exit(&self) -> u8;

    /// Returns the lines for people. `strong` wraps the code.
    fn lines(&self, strong: &dyn Fn(&str) -> String) -> Vec<String>;

    /// Returns the problem as `dendrer.error/1`.
    fn to_json(&self) -> Value;
}

impl ShownProblem for Problem {
    fn exit(&self) -> u8 {
        codes::entry(self.code).exit
    }

    fn lines(&self, strong: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut lines =
            vec![format!("{} {}", strong(&format!("error[{}]:", self.code)), quote::escape(&self.message))];
        for (name, value) in &self.place {
            lines.extend(value.split('\n').map(|line| format!("  | {name:<8} {}", quote::escape(line))));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {}", quote::escape(note))));
        lines.extend(self.help.iter().take(3).map(|argv| format!("help: {}", shell(argv))));
        lines.push(format!("      see: dendrer explain {}", self.code));
        lines
    }

    fn to_json(&self) -> Value {
        let texts = |list: &[String]| Value::array(list.iter().map(|text| Value::from(text.as_str())));
        let place = self.place.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        let items = self.items.as_deref().map(|items| ("items", items.clone()));
        document(
            "error",
            [
                ("code", Value::from(self.code)),
                ("kind", Value::from(self.code.kind())),
                ("message", Value::from(&*self.message)),
                (
                    "where",
                    Value::record(place.map(|(name, value)| (dendrer_object::tag::stored_name(name), value))),
                ),
                ("changed", Value::from(self.changed)),
                ("notes", texts(&self.notes)),
                ("help", Value::array(self.help.iter().map(|argv| Value::record([("argv", texts(argv))])))),
            ]
            .into_iter()
            .chain(items),
        )
    }
}
