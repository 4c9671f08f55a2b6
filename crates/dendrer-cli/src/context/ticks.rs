//! Ticks as flags and addresses name them.

pub(crate) use dendrer::source::in_order;
