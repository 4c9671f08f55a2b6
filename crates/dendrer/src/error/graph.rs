//! Why a graph is not run or replayed.

use dendrer_graph::eval::NodeFault;
use dendrer_object::{Code, RunName};

/// Why a graph is not run or replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphRefused {
    /// A run was not recorded by a graph.
    #[error("{0} is not the run of a graph")]
    NotGraph(RunName),
    /// The statement on the graph in the record of a run cannot be read.
    #[error("what {run} says of its graph cannot be read: {why}")]
    Malformed {
        /// The run.
        run: RunName,
        /// Why not.
        why: String,
    },
    /// The pack has rules or another engine, and a graph brings the changes of state itself.
    #[error("the pack of a graph has no rules and no module: its nodes and edges are all that is written")]
    Rules,
    /// The pack cannot declare what a graph writes.
    #[error("the pack cannot declare `edges`, `nodes`, `output` and host functions: {0}")]
    Pack(String),
    /// The graph itself holds what looks like a secret.
    #[error("the graph holds what looks like a secret, at {0}; make it an input or an edge")]
    HoldsSecret(String),
    /// An input has no value.
    #[error("the graph has an input {0}, and no value for it was given")]
    NoInput(String),
    /// An effect that a run may ask yet has no executor.
    #[error("nothing answers {0}: --exec {0}=CMD or --http {0}=URL")]
    NoExecutor(String),
    /// Another process runs the graph under the same name.
    #[error("another process runs {0}")]
    UnderWay(RunName),
    /// The parts of a resumed run differ from those that it was begun with.
    #[error("{run} was begun with another {what}")]
    Another {
        /// The run.
        run: RunName,
        /// The part: `graph`, `pack`, `input NAME` or `stage`.
        what: String,
    },
    /// A run has lines that no graph wrote.
    #[error("{run} has a line of others at tick {tick}, and does not go on")]
    OfOthers {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
    },
    /// A path names no edge of a run that waits for an answer.
    #[error("{path} of {run} waits for no answer")]
    NotDue {
        /// The run.
        run: RunName,
        /// The path.
        path: String,
    },
    /// A node cannot be computed.
    #[error(transparent)]
    Node(#[from] NodeFault),
    /// A node of a run cannot be computed.
    #[error("{fault}")]
    Failed {
        /// The node.
        fault: NodeFault,
        /// The edges that it reads.
        edges: Vec<String>,
    },
    /// An effectful edge has acted, or may have, and with a replaced answer it is asked something else or not reached.
    #[error(
        "{path} has acted or may have, and with the answers now known it is {}",
        if *.is_reached { "asked something else" } else { "not reached" }
    )]
    Acted {
        /// The path of the effectful edge.
        path: String,
        /// Whether it is asked something else; otherwise it is not reached.
        is_reached: bool,
    },
    /// An effect failed.
    #[error("{path} {call} failed: {why}")]
    Edge {
        /// The path of the edge.
        path: String,
        /// The effect.
        call: String,
        /// Why.
        why: String,
    },
    /// A host function gave two results for the same arguments.
    #[error("{path} {call} is {why}")]
    NotPure {
        /// The path of the node.
        path: String,
        /// The function.
        call: String,
        /// Both results.
        why: String,
    },
    /// A name is taken, and no host function can have it.
    #[error("{name} cannot be a host function: {why}")]
    NoHost {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A run that enforces would depend on a host function.
    #[error("{0} is a host function, which is tested and not pure by construction: it runs at stage 0 or 1")]
    HostStage(String),
    /// The closing replay gave something else.
    #[error("the replay of {run} differs at {path}")]
    Diverged {
        /// The run.
        run: RunName,
        /// Where.
        path: String,
    },
    /// An intent of the run was refused.
    #[error("{path} was refused: {why}")]
    Turned {
        /// The path of the edge, or the end of the run.
        path: String,
        /// The code of the refusal.
        code: Code,
        /// Why.
        why: String,
    },
    /// The request of an edge was refused, so that its effect was not asked.
    #[error("{path} was denied, and {call} was not asked: {why}")]
    Denied {
        /// The path of the edge.
        path: String,
        /// The call.
        call: String,
        /// The code of the refusal.
        code: Code,
        /// Why.
        why: String,
    },
    /// The value of an edge was erased or withheld.
    #[error(
        "the value of an edge of {run}, at tick {tick}, was erased or withheld, so its graph cannot be evaluated"
    )]
    Withheld {
        /// The run.
        run: RunName,
        /// The tick of the result.
        tick: u64,
    },
    /// A path names no edge of the run.
    #[error("{run} has no edge {path}")]
    NoEdge {
        /// The run.
        run: RunName,
        /// The path.
        path: String,
    },
}

impl GraphRefused {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            GraphRefused::NotGraph(_) | GraphRefused::NoEdge { .. } | GraphRefused::NotDue { .. } => {
                Code::E0938
            }
            GraphRefused::UnderWay(_) => Code::E0943,
            GraphRefused::Another { .. } => Code::E0942,
            GraphRefused::OfOthers { .. } => Code::E0941,
            GraphRefused::Malformed { .. } => Code::E0301,
            GraphRefused::Rules | GraphRefused::Pack(_) => Code::E0905,
            GraphRefused::NoInput(_) | GraphRefused::HoldsSecret(_) | GraphRefused::NoExecutor(_) => {
                Code::E0934
            }
            GraphRefused::Acted { .. } => Code::E0940,
            GraphRefused::Node(_) | GraphRefused::Failed { .. } => Code::E0935,
            GraphRefused::Edge { .. } => Code::E0936,
            GraphRefused::NotPure { .. } => Code::E0945,
            GraphRefused::HostStage(_) => Code::E0946,
            GraphRefused::NoHost { .. } => Code::E0106,
            GraphRefused::Diverged { .. } => Code::E0937,
            GraphRefused::Turned { code, .. } | GraphRefused::Denied { code, .. } => *code,
            GraphRefused::Withheld { .. } => Code::E0311,
        }
    }
}
