//! Problems as lines and as `dendrer.error/1`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::document::As;
use dendrer_object::value::{Array, Object};
use dendrer_object::{Code, Value, document, tag};

pub use dendrer::problem::{Problem, READS_ONLY, in_store, no_pack, replay};

use crate::quote::shell;
use crate::{codes, quote};

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
        ErrorDocument::of(self).into()
    }
}

document! {
    /// A failure
    pub object ErrorDocument: "error" (problem: &Problem) {
        let place = problem.place.iter().map(|(name, value)| (tag::stored_name(name), &**value));
        /// The code
        code: Code = problem.code,
        /// The kind of the fault
        kind: &str = problem.code.kind(),
        /// The object and the fact in one sentence
        message: &str = &problem.message,
        /// The place, as names and values
        where: BTreeMap<Arc<str>, &str> = place.collect(),
        /// Whether the command changed anything before it failed
        changed: bool = problem.changed,
        /// Notes, such as a part that was not changed
        notes: &[String] = &problem.notes,
        /// The commands that help
        help: Vec<HelpCommand> = problem.help.iter().map(|words| HelpCommand::of(words)).collect(),
        /// The rules that the state of a run that was not begun breaks, each with the values that decide
        violations?: As<Array> = problem.violations.as_deref().cloned().map(As::new),
        /// The items that were recorded before the command failed
        items?: As<Vec<Object>> = problem.items.as_deref().cloned().map(As::new),
    }

    /// A command that helps
    pub(crate) object HelpCommand(words: &[String]) {
        /// The arguments
        argv: &[String] = words,
    }
}
