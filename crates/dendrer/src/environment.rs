//! Clock and seeds for the kernel: of the system, or fixed for tests.

use std::time::{SystemTime, UNIX_EPOCH};

use dendrer_object::record::{Author, Body, Header, Kind, Record, Seed, cut};
use dendrer_object::{Digest, RunName, StoreId, Timestamp, Value};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::Error;

/// Clock and seeds that the kernel is given.
pub trait Environment: Send {
    /// Returns the time.
    fn now(&mut self) -> Timestamp;

    /// Returns 16 bytes of chance, never the same twice: the secret of a step, or the seed of a record that is made by itself.
    fn seed(&mut self) -> Seed;
}

/// Seals a record of the institution that is on the chain of no run. `run` is the one that it is about.
pub(crate) fn seal_by_institution(
    store: StoreId,
    kind: Kind,
    run: Option<RunName>,
    content: &Value,
    environment: &mut dyn Environment,
) -> Result<Record, Error> {
    seal_off_chain(Author::Institution, store, kind, run, content, environment)
}

/// Seals a record that is not on the chain of a run.
pub(crate) fn seal_off_chain(
    author: Author,
    store: StoreId,
    kind: Kind,
    run: Option<RunName>,
    content: &Value,
    environment: &mut dyn Environment,
) -> Result<Record, Error> {
    let header = Header {
        store,
        kind,
        run,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author,
        ts: environment.now(),
        links: Vec::new(),
        pack: None,
    };
    let fields = cut(content.as_object().expect("content is an object"));
    Ok(Record::seal(header, Body::commit(fields, environment.seed())?)?)
}

/// Clock and random seeds of the system.
#[derive(Debug)]
pub struct World {
    random: SystemRandom,
    // Asking the system for each seed would cost more than sealing a record.
    seeds: Vec<u8>,
}

impl Default for World {
    fn default() -> World {
        World { random: SystemRandom::new(), seeds: Vec::new() }
    }
}

impl Environment for World {
    fn now(&mut self) -> Timestamp {
        // A time before 1970 is 0: the kernel clamps a clock that goes back, and notes it.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn seed(&mut self) -> Seed {
        if self.seeds.len() < 16 {
            self.seeds = vec![0; 4096];
            self.random.fill(&mut self.seeds).expect("the system has randomness");
        }
        let at = self.seeds.len() - 16;
        let seed = Seed(self.seeds[at..].try_into().expect("16 bytes"));
        self.seeds.truncate(at);
        seed
    }
}

/// Clock and seeds that follow from a name: the same recording has the same bytes on every machine.
#[derive(Debug, Clone)]
pub struct Fixed {
    key: [u8; 16],
    next: u64,
    now_ms: u64,
    step_ms: u64,
}

impl Fixed {
    /// Starts at a time. The clock advances by `step_ms` with each reading.
    pub fn new(name: &str, now_ms: u64, step_ms: u64) -> Fixed {
        let key = Digest::of_parts(&[b"dendrer/fixed-seed/v1\n", name.as_bytes()]);
        Fixed { key: key.0[..16].try_into().expect("16 of 32 bytes"), next: 0, now_ms, step_ms }
    }
}

impl Environment for Fixed {
    fn now(&mut self) -> Timestamp {
        self.now_ms += self.step_ms;
        Timestamp::from_ms(self.now_ms)
    }

    fn seed(&mut self) -> Seed {
        self.next += 1;
        let digest = Digest::of_parts(&[&self.key, &self.next.to_be_bytes()]);
        Seed(digest.0[..16].try_into().expect("16 of 32 bytes"))
    }
}
