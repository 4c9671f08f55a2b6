//! The names that a program which records and asks needs. `use dendrer::prelude::*;`

pub use std::sync::Arc;

pub use dendrer_kernel::predicate::Predicate;
pub use dendrer_kernel::step::{Outcome, Stage, Start};
pub use dendrer_object::delta::{Delta, Op};
pub use dendrer_object::{Intent, Pointer, Record, RunName, TypeName, Value};

pub use crate::address::Address;
pub use crate::record::recorder::Recorder;
pub use crate::repo::{Mode, Repo, Signed};
pub use crate::run::trace::Trace;
pub use crate::trust::{MemoryTrust, Trust, UserTrust};
