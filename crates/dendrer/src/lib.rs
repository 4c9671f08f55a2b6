//! Version control for the runs of AI agents: record a run, prove it, replay it, find where it went wrong.
//!
//! [`Repo`] opens a store safely: it compares the log with the newest head that this user signed, so that a store that was
//! rolled back is never written. [`Recorder`] writes a run, [`Trace`] reads one. Every answer is read from the record; no
//! model and no tool is called.
//!
//! ```
//! use dendrer::prelude::*;
//! use dendrer::bisect::{Outcome as Found, Question};
//!
//! # fn main() -> Result<(), dendrer::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path();
//! // A store, with its key kept in memory. `UserTrust::of_user()` keeps it in this user's files.
//! let trust = Arc::new(MemoryTrust::new());
//! let repo = Repo::init(&dir.join(".dendrer"), trust)?;
//!
//! // Record: the agent proposes, the kernel judges, what was committed is durable.
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
//! let answer = trace.bisect(&Question::Predicate(calm))?;
//! assert_eq!(answer.outcome, Found::Onset(3));
//! # Ok(())
//! # }
//! ```
//!
//! Everything works on any [`Store`](store::Store), a bundle included. Nothing here judges an intent: that is the kernel's
//! part, and there is one door to it.

pub mod address;
pub mod ask_bisect;
pub mod ask_log;
pub mod ask_named;
pub mod ask_predicates;
pub mod ask_receipt;
pub mod ask_replay;
pub mod ask_runs;
pub mod ask_show;
pub mod ask_state;
pub mod ask_why;
pub mod bisect;
#[cfg(feature = "serde_json")]
pub mod bridge;
pub mod bundle;
pub mod casebook;
pub mod cherrypick;
pub mod closed;
pub mod contract;
pub mod contributors;
pub mod diagnosis;
pub mod diff;
mod difference;
pub mod error;
pub mod extension;
pub mod files;
pub mod fork;
pub mod keep;
pub mod lines;
pub mod merge;
pub mod pack;
pub mod prelude;
pub mod profile;
pub mod progress;
pub mod provenance;
pub mod rebase;
pub mod recorder;
pub mod registry;
pub mod repo;
pub mod timeline;
pub mod tools;
pub mod trace;
pub mod trust;
mod verdicts;
pub mod verify;
pub mod watch;
pub mod why;

pub use error::Error;
pub use recorder::Recorder;
pub use repo::Repo;
pub use trace::Trace;

pub use dendrer_kernel as kernel;
pub use dendrer_object as object;
pub use dendrer_store as store;
pub use dendrer_wasm as wasm;
