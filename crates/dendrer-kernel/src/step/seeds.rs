//! The time and the chance of a step. Neither comes from here: the caller brings both, so that replay can bring them again.

use dendrer_object::record::Seed;
use dendrer_object::{Digest, Timestamp};

/// The time and the chance that a step is given from outside.
#[derive(Debug, Clone, Copy)]
pub struct Inputs {
    /// The time of the clock. A later head holds the time back.
    pub clock: Timestamp,
    /// The seeds of the salts of the records that the step makes.
    pub seeds: Seeds,
}

/// Seeds of the salts of the records that one step makes, in order.
///
/// A step is given a secret that is on no record: its record `i` has the seed `H(tag | secret | i)`, so nothing about one record
/// follows from the seed of another (design, section 3). Replay takes the seed that is on record.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    from: SeedSource,
    skipped: u64,
}

#[derive(Debug, Clone, Copy)]
enum SeedSource {
    Secret([u8; 16]),
    Recorded(Seed),
}

impl Seeds {
    /// Derives the seeds from a secret of a new step: 16 bytes of chance that are used for nothing else.
    pub fn of_secret(secret: [u8; 16]) -> Seeds {
        Seeds { from: SeedSource::Secret(secret), skipped: 0 }
    }

    /// Takes the seed of a record that is made again.
    pub fn recorded(seed: Seed) -> Seeds {
        Seeds { from: SeedSource::Recorded(seed), skipped: 0 }
    }

    /// Returns the seed of record `i` of the step, from 0.
    pub(super) fn nth(&self, i: u64) -> Seed {
        match self.from {
            SeedSource::Secret(secret) => {
                let number = (self.skipped + i).to_be_bytes();
                let digest = Digest::of_parts(&[b"dendrer/step-seed/v1\n", &secret, &number]);
                Seed(digest.0[..16].try_into().expect("16 of 32 bytes"))
            }
            // Each record that is made again is made by itself.
            SeedSource::Recorded(seed) => seed,
        }
    }

    /// Returns the seeds behind the first `count` records of the step.
    pub(super) fn behind(&self, count: u64) -> Seeds {
        Seeds { skipped: self.skipped + count, ..*self }
    }
}

impl Inputs {
    /// Returns the inputs of the records behind the first `count` of the step.
    pub fn behind(self, count: u64) -> Inputs {
        Inputs { seeds: self.seeds.behind(count), ..self }
    }
}
