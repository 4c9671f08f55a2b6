//! Names for predicates, registered and retired through a [`Repo`].

use dendrer_kernel::predicate::Predicate;
use dendrer_object::record::Record;

use crate::error::Error;
use crate::registry::{self, RegisterError, Registration, Sample};
use crate::repo::Repo;

impl Repo {
    /// Registers a predicate under its name and version ([`registry::register`]).
    pub fn register(
        &self,
        predicate: &Predicate,
        samples: Vec<Sample>,
    ) -> Result<Registration, RegisterError> {
        registry::register(self.writer()?, predicate, samples, &mut *self.environment())
    }

    /// Ends a name: it resolves to nothing until it is registered again. `None` if no predicate has the name.
    pub fn retire(&self, name: &str) -> Result<Option<Record>, Error> {
        registry::retire(self.writer()?, name, &mut *self.environment())
    }
}
