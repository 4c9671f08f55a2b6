//! Problems as lines and as `dendrer.error/1`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::document::As;
use dendrer_object::value::{Array, Object};
use dendrer_object::{Code, Value, document, tag};

pub use dendrer::problem::{MarkedText, Problem, READS_ONLY, in_bundle, in_store, no_pack, replay};

use crate::answer::{Line, Page, Style};
use crate::layout::lay;
use crate::{caret, codes, quote};

/// The column at which the value of a place begins, and continues.
const PLACE: usize = 13;

/// A problem as it is shown.
pub trait ShownProblem {
    /// Returns the exit code of a command that ends with this problem.
    fn exit(&self) -> u8;

    /// Returns the lines for people, as wide as their place is.
    fn lines(&self, width: Option<usize>) -> Vec<Line>;

    /// Returns the lines as one text without styles.
    fn text(&self, width: Option<usize>) -> String {
        self.lines(width).iter().map(Line::text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the problem as `dendrer.error/1`.
    fn to_json(&self) -> Value;
}

impl ShownProblem for Problem {
    fn exit(&self) -> u8 {
        codes::entry(self.code).exit
    }

    fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let head = Line::styled(Style::Bad, format!("error[{}]:", self.code));
        let mut lines = vec![head.then(format!(" {}", quote::escape(&self.message)))];
        let marked = self.marked.as_deref();
        lines.extend(marked.into_iter().flat_map(caret::lines).map(Line::from));
        // The caret has the place of an expression.
        let place = self.place.iter().filter(|(name, _)| marked.is_none() || name != "expression");
        for (name, value) in place {
            let line = |line| Line::from(format!("  | {name:<8} {}", quote::escape(line))).hang(PLACE);
            lines.extend(value.split('\n').map(line));
        }
        lines.extend(self.notes.iter().map(|note| Line::from(format!("note: {}", quote::escape(note)))));
        lines.extend(help(self));
        // A usage error has nothing to explain.
        if self.code != Code::E0106 {
            lines.push(format!("      see: dendrer explain {}", self.code).into());
        }
        lay(lines, &Page { width, ..Page::WIDE })
    }

    fn to_json(&self) -> Value {
        ErrorDocument::of(self).into()
    }
}

/// The commands that help. The one for a writer without a secret is typed on another machine, and its line names that.
fn help(problem: &Problem) -> Vec<Line> {
    match (problem.code, &*problem.help) {
        (Code::E0804, [writer, recover]) => {
            let (writer, recover) = (writer.join(" "), recover.join(" "));
            vec![Line::note(format!("help: on the machine with the key: {writer}; if it is lost: {recover}"))]
        }
        (_, all) => all.iter().take(3).map(|argv| Line::command("help: ", argv)).collect(),
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
