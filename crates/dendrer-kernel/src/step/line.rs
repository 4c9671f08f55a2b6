//! Lines that are JSON and no intent (design, section 4): kept as a refusal, with the line as it was.

use std::sync::Arc;

use dendrer_object::record::{Author, Header, Record, SealError};
use dendrer_object::{Code, Value};

use super::{Inputs, Outcome, Reason, Refused, RunState, Stage, make_anomaly, refusal_header, seal};
use crate::ontology::check_name;
use crate::sealed::{fact, told};

/// The member of a refusal that holds the line.
pub(super) const LINE: &str = "line";

/// Bytes of the name of an agent, at most.
const AGENT_SIZE_MAX: usize = 256;

/// Why a line is no intent of the one who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum LineFault {
    /// It misses the schema of intents.
    #[error("{message}")]
    Schema {
        /// The code under which `dendrer explain` knows it.
        code: Code,
        /// The member that is wrong, as a JSON pointer; empty for the whole line.
        path: String,
        /// The sentence for the caller. It is not sealed: the line itself is.
        message: String,
    },
    /// It names an author that the writer is not.
    Author(Author, &'static [Author]),
}

impl LineFault {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            LineFault::Schema { code, .. } => *code,
            LineFault::Author(..) => Code::E0408,
        }
    }

    /// The member that is wrong, as a JSON pointer; empty for the whole line.
    pub fn path(&self) -> &str {
        match self {
            LineFault::Schema { path, .. } => path,
            LineFault::Author(..) => "/author",
        }
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(super) fn sealed(&self) -> Value {
        let path = ("path", Value::from(self.path()));
        match self {
            LineFault::Schema { .. } => fact("schema_mismatch", [path]),
            LineFault::Author(author, may) => {
                let may = may.iter().map(|author| Value::from(author.as_str()));
                fact(
                    "author_not_given",
                    [("author", Value::from(author.as_str())), ("may", Value::array(may)), path],
                )
            }
        }
    }

    /// The kind of the anomaly that names it.
    fn kind(&self) -> &'static str {
        match self {
            LineFault::Schema { .. } => "schema_mismatch",
            LineFault::Author(..) => "forged_author",
        }
    }
}

/// Puts the refusal of a line on record. From stage 1 on a `kernel.anomaly` names it, and at every stage if the line spoke
/// for another author.
pub fn refuse_line(
    head: &mut RunState,
    line: &Value,
    fault: LineFault,
    inputs: Inputs,
) -> Result<Outcome, SealError> {
    let named = ["agent", "agent_id"].iter().find_map(|name| line.get(name)?.as_str());
    let agent = named.filter(|name| !name.is_empty() && name.len() <= AGENT_SIZE_MAX);
    let agent: Arc<str> = agent.filter(|name| check_name(name).is_ok()).unwrap_or("agent").into();
    let reason = Reason::Line(fault);
    let refusal = line_refusal(head, &agent, line.clone(), reason.sealed(), inputs)?;
    let Reason::Line(fault) = &reason else { unreachable!("made above") };
    let is_named = head.stage() >= Stage::Replay || matches!(fault, LineFault::Author(..));
    let anomaly = is_named.then(|| {
        let mut entry = reason.sealed().as_object().cloned().unwrap_or_default();
        entry.set("agent_id", Value::String(Arc::clone(&agent)));
        entry.set("kind", Value::from(fault.kind()));
        entry.set("refusal", Value::from(refusal.id()));
        make_anomaly(head, Value::Object(entry), inputs.behind(1))
    });
    let anomaly = anomaly.transpose()?;
    Ok(Outcome::Refused(Refused { reason, refusal, anomaly }))
}

/// Makes the refusal of a line.
pub(super) fn line_refusal(
    head: &RunState,
    agent: &str,
    line: Value,
    why: Value,
    inputs: Inputs,
) -> Result<Record, SealError> {
    let header = Header { head: Some(head.id), ..refusal_header(head, inputs) };
    seal(header, vec![("agent_id", Value::from(agent)), (LINE, line), ("reason", why)], inputs.seeds.nth(0))
}
