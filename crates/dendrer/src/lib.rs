//! Version control for the runs of AI agents: record a run, prove it, replay it, find where it went wrong.
//!
//! [`Repo`] opens a store safely: it compares the log with the newest head that this user signed, so that a store that was
//! rolled back is never written. [`Recorder`] writes a run, [`Trace`] reads one. Every answer is read from the record; no
//! model and no tool is called.
//!
//! ```
//! use dendrer::prelude::*;
//! use dendrer::bisect::{BisectOutcome, BisectSubject};
//!
//! # fn main() -> Result<(), dendrer::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path();
//! // A store, with its key kept in memory. `UserTrust::of_user()` keeps it in this user's files.
//! let trust = Arc::new(MemoryTrust::new());
//! let repo = Repo::init(&dir.join(".dendrer"), trust)?;
//!
//! // Record: the agent proposes, the kernel judges. `commit` makes what it judged durable.
//! let run = "support-1".parse().unwrap();
//! let state = Value::record([("risk", Value::from(0.0))]);
//! let mut recorder = repo.begin(&Start { state, ..Start::new(run) })?;
//! for risk in [0.25, 0.5, 0.875] {
//!     let delta = Delta(vec![Op::set(Pointer::of(["risk"]), Value::from(risk))]);
//!     let intent = Intent::new("observation.add".parse().unwrap(), "agent").with_delta(delta);
//!     assert!(matches!(recorder.propose(&intent)?, Outcome::Committed(_)));
//! }
//! recorder.commit()?;
//! repo.sign()?;
//!
//! // Ask: at which tick did it first go wrong?
//! let (trace, _) = repo.at(&Address::parse("support-1").unwrap())?;
//! let calm = Predicate::holds("risk", "state.risk <= 0.75")?.lifted();
//! let answer = trace.bisect(&BisectSubject::Predicate(calm))?;
//! assert_eq!(answer.outcome, BisectOutcome::Onset(3));
//! # Ok(())
//! # }
//! ```
//!
//! Everything works on any [`Store`](store::Store), a bundle included. Nothing here judges an intent: that is the kernel's
//! part, and there is one door to it.

pub mod address;
pub mod ask;
#[cfg(feature = "serde_json")]
pub mod bridge;
pub mod care;
pub mod casebook;
pub mod change;
pub mod checkpoint;
pub mod environment;
pub mod error;
pub mod evidence;
pub mod files;
pub mod handle;
pub mod limits;
pub mod pack;
pub mod prelude;
pub mod problem;
pub mod record;
pub mod redact;
pub mod registry;
pub mod repo;
pub mod run;
pub mod source;
pub mod trust;
pub mod vault;
pub mod watch;

pub use ask::{bisect, contract, contributors, diff, provenance, why};
pub use change::{cherrypick, delegate, fork, merge, rebase, reduce, selection};
pub use error::Error;
pub use evidence::{bundle, page, verify};
pub use record::recorder::Recorder;
pub use record::{lines, recorder, reread, tools, writer};
pub use repo::Repo;
pub use run::trace::Trace;
pub use run::{closed, timeline, trace};

pub use dendrer_chain as chain;
pub use dendrer_graph as graph;
pub use dendrer_kernel as kernel;
pub use dendrer_object as object;
pub use dendrer_store as store;
pub use dendrer_wasm as wasm;
