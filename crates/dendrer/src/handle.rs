//! Handles of stores that a [`Trace`](crate::run::trace::Trace) can keep.

use std::sync::Arc;

use dendrer_store::{Shared, Store};

/// A store handle that a [`Trace`] can keep: shared, and read from several threads.
pub trait ReadHandle {
    /// Returns the handle for a trace to keep.
    fn to_handle(&self) -> Arc<dyn Store>;
}

impl ReadHandle for Arc<dyn Store> {
    fn to_handle(&self) -> Arc<dyn Store> {
        Arc::clone(self)
    }
}

impl<S: Store + 'static> ReadHandle for Arc<S> {
    fn to_handle(&self) -> Arc<dyn Store> {
        Arc::clone(self) as Arc<dyn Store>
    }
}

impl<H: ReadHandle> ReadHandle for &H {
    fn to_handle(&self) -> Arc<dyn Store> {
        (**self).to_handle()
    }
}

impl ReadHandle for Shared {
    fn to_handle(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }
}
