//! The attacks by name, those of the tables in `docs/testing.md`.

use dendrer_object::Digest;
use dendrer_object::bundle::Bundle;
use dendrer_object::note::{Checkpoint, SigningKey};
use dendrer_object::record::{Author, Header, Kind, Link, Rel};
use dendrer_object::{Pointer, Record, Timestamp, Value};
use dendrer_store::StoreInfo;

use super::log::{ForgedLog, Leaf, Means, body_of, refilled, relinked};
use super::stock::Stock;
use crate::stores::{run_name, store_id};

/// The thing that a forger hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// A bundle.
    Bundle,
    /// A store.
    Store,
}

/// How a log is attacked.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// The means.
    pub means: Means,
    /// Bundle or store.
    pub handed: Handed,
}

type Edit = fn(&Stock, &mut ForgedLog, How);
type Last = fn(&Stock, Bundle) -> Vec<u8>;

/// An attack.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name in the tables.
    pub name: &'static str,
    /// The means with which it can be tried.
    pub means: &'static [Means],
    /// Whether a store can be attacked so, too.
    pub of_stores: bool,
    base: usize,
    edit: Edit,
    last: Last,
}

/// The bundles of [`Stock::bundles`].
const W: usize = 0;
const V: usize = 1;
const FORK: usize = 2;
const ERASED: usize = 3;
const ALL: usize = 4;
const WITHHELD: usize = 5;

use Means::{Edits, Seals, Signs};

const EACH: &[Means] = &[Edits, Seals, Signs];
const NO_KEY: &[Means] = &[Edits, Seals];

impl Attack {
    /// The number of the honest bundle that is attacked.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Makes the forged log; its records are sealed and signed as the means allow.
    pub fn log(&self, stock: &Stock, how: How) -> ForgedLog {
        let mut log = stock.log(if how.handed == Handed::Store { ALL } else { self.base });
        (self.edit)(stock, &mut log, how);
        log.finish(how.means, &stock.key);
        log
    }

    /// Makes the forged bundle.
    pub fn bundle(&self, stock: &Stock, means: Means) -> Vec<u8> {
        let log = self.log(stock, How { means, handed: Handed::Bundle });
        (self.last)(stock, log.bundle())
    }
}

fn written(_: &Stock, bundle: Bundle) -> Vec<u8> {
    bundle.write(&|_| vec![0])
}

fn nothing(_: &Stock, _: &mut ForgedLog, _: How) {}

/// An attack on bundles and stores, by changing records.
const fn on_both(name: &'static str, base: usize, edit: Edit) -> Attack {
    Attack { name, means: EACH, of_stores: true, base, edit, last: written }
}

/// An attack on bundles, with what is done to the bundle at last.
const fn on_bundle(
    name: &'static str,
    means: &'static [Means],
    base: usize,
    edit: Edit,
    last: Last,
) -> Attack {
    Attack { name, means, of_stores: false, base, edit, last }
}

/// The position of a record of a run.
fn at(log: &ForgedLog, run: &str, kind: Kind, tick: Option<u64>) -> usize {
    let is_it = |leaf: &Leaf| {
        let header = leaf.record.header();
        header.kind == kind
            && header.run.as_ref().map(|run| run.as_str()) == Some(run)
            && (tick.is_none() || header.tick == tick)
    };
    log.leaves.iter().position(is_it).expect("the log has the record")
}

fn tick(log: &ForgedLog, run: &str, tick: u64) -> usize {
    at(log, run, if tick == 0 { Kind::Run } else { Kind::Transition }, Some(tick))
}

/// Replaces the record at a position; its entry stays until the log is sealed.
fn put(log: &mut ForgedLog, at: usize, record: Record) {
    log.leaves[at].record = record;
}

/// Takes a record out: of a bundle by leaving it out, of a store and of a log that is signed again from the log.
fn drop_one(log: &mut ForgedLog, at: usize, how: How) {
    match (how.means, how.handed) {
        (Signs, _) | (Seals, Handed::Store) => log.remove(at),
        (_, Handed::Bundle) => log.leaves[at].is_here = false,
        (_, Handed::Store) => drop(log.leaves.remove(at)),
    }
}

fn header_with(log: &mut ForgedLog, at: usize, change: impl Fn(&mut Header)) {
    let mut header = log.leaves[at].record.header().clone();
    change(&mut header);
    let record = relinked(&log.leaves[at].record, header);
    put(log, at, record);
}

fn content_with(log: &mut ForgedLog, at: usize, name: &str, value: Value) {
    let mut content = log.leaves[at].record.content();
    if let Value::Object(object) = &mut content {
        object.set(name, value);
    }
    let record = refilled(&log.leaves[at].record, &content, 5);
    put(log, at, record);
}

fn parsed(text: &str) -> Value {
    dendrer_object::json::parse_canonical(text.as_bytes()).expect("canonical JSON")
}

/// A text edit that must change something.
fn replaced(bundle: Bundle, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(bundle.write(&|_| vec![0])).expect("a bundle is text");
    let edited = text.replacen(from, to, 1);
    assert_ne!(text, edited, "{from} is in the bundle");
    edited.into_bytes()
}

/// Signs the newest checkpoint with another key of the same name.
fn stranger(stock: &Stock) -> SigningKey {
    SigningKey::from_seed(&stock.info.id.origin(), [99; 32]).expect("an origin")
}

/// Rewrites the whole log under another key: the record that binds the key, the header and the signature.
fn under_another_key(stock: &Stock, log: &mut ForgedLog, _: How) {
    let key = stranger(stock);
    log.info = StoreInfo::new(stock.info.id, key.verifier_key().clone());
    let begin =
        log.leaves.iter().position(|leaf| leaf.entry.kind == Kind::Key).expect("the record of the key");
    content_with(log, begin, "verifier", Value::from(key.verifier_key().to_string()));
    log.seal();
    log.sign(&key);
}

/// A record of the fork's parent is rewritten, and the log signed again.
fn last_tick(log: &ForgedLog, run: &str) -> usize {
    let is_it = |leaf: &Leaf| {
        leaf.entry.kind == Kind::Transition
            && leaf.entry.run.as_ref().is_some_and(|name| name.as_str() == run)
    };
    log.leaves.iter().rposition(is_it).expect("the run has a transition")
}

fn withhold(log: &mut ForgedLog, at: usize, places: &[&str]) {
    let places: Vec<Pointer> = places.iter().map(|place| place.parse().expect("a pointer")).collect();
    let record = log.leaves[at].record.without(&places);
    put(log, at, record);
}

/// The part of the log that was signed when it was smaller.
fn roll_back(stock: &Stock, log: &mut ForgedLog, how: How) {
    log.leaves.truncate(stock.older_size());
    log.checkpoint.clone_from(&stock.older.checkpoint);
    if how.handed == Handed::Bundle {
        *log = ForgedLog::of(&stock.info, &stock.records, &stock.older);
    }
}

/// All attacks, in the order of the tables.
pub const ATTACKS: &[Attack] = &[
    on_bundle("a value is edited", &[Edits], W, nothing, |_, bundle| {
        replaced(bundle, "w counts to 1", "w counts to 9")
    }),
    on_both("a value and its digest are edited", W, |_, log, _| {
        let at = tick(log, "w", 1);
        content_with(log, at, "goal_id", Value::from("another"));
    }),
    on_both("the type of a record is edited", W, |_, log, _| {
        let at = tick(log, "w", 2);
        header_with(log, at, |header| header.type_name = "plan.update".parse().ok());
    }),
    on_both("the time of a record is edited", W, |_, log, _| {
        let at = tick(log, "w", 2);
        header_with(log, at, |header| header.ts = Timestamp::from_ms(header.ts.ms() + 1));
    }),
    on_both("a run is dated back to 1970", V, |_, log, _| {
        for tick_of in 0..4 {
            let at = tick(log, "v", tick_of);
            header_with(log, at, |header| header.ts = Timestamp::from_ms(1000 + tick_of));
        }
    }),
    on_both("a link is added", W, |_, log, _| {
        let (at, to) = (tick(log, "w", 2), log.leaves[tick(log, "v", 1)].named);
        header_with(log, at, |header| header.links.push(Link { rel: Rel::Evidence, hash: to }));
    }),
    on_both("an author is edited to `kernel`", W, |_, log, _| {
        let at = tick(log, "w", 2);
        header_with(log, at, |header| header.author = Author::Kernel);
    }),
    on_both("an agent is named `institution`", W, |_, log, _| {
        let at = tick(log, "w", 2);
        content_with(log, at, "agent_id", Value::from("institution"));
    }),
    on_both("a delta makes another state than its root", W, |_, log, _| {
        let at = tick(log, "w", 2);
        content_with(log, at, "delta", parsed(r#"[{"set":"/n","value":77}]"#));
    }),
    on_both("a transition is dropped", W, |_, log, how| {
        let at = tick(log, "w", 2);
        drop_one(log, at, how);
    }),
    on_both("the last transition is dropped", V, |_, log, how| {
        let at = last_tick(log, "v");
        drop_one(log, at, how);
    }),
    on_both("the tail of a run is cut", V, |_, log, how| {
        for _ in 0..2 {
            let at = log.places(Some("v"), Kind::Transition).pop().expect("v has transitions");
            drop_one(log, at, how);
        }
    }),
    on_both("a refusal is dropped", W, |_, log, how| {
        let at = at(log, "w", Kind::Refusal, None);
        drop_one(log, at, how);
    }),
    on_both("a refusal of the parent of a fork is dropped", FORK, |_, log, how| {
        if let Some(at) = log.places(Some("w"), Kind::Refusal).pop() {
            drop_one(log, at, how);
        }
    }),
    on_both("the end of a run is dropped", W, |_, log, how| {
        let at = at(log, "w", Kind::End, None);
        drop_one(log, at, how);
    }),
    on_both("an erasure is dropped", ERASED, |_, log, how| {
        let at = at(log, "e", Kind::Erase, None);
        drop_one(log, at, how);
    }),
    on_both("the record of the key is dropped", W, |_, log, how| {
        let at = log.places(None, Kind::Key)[0];
        drop_one(log, at, how);
    }),
    on_both("a registration is dropped", W, |_, log, how| {
        let at = log.places(None, Kind::Register)[0];
        drop_one(log, at, how);
    }),
    on_both("the map is dropped, with its line", W, |_, log, how| {
        let at = log.places(None, Kind::Map).pop().expect("a map");
        drop_one(log, at, how);
        log.map = None;
    }),
    on_both("a whole run is dropped", ALL, |_, log, how| {
        while let Some(at) = log
            .leaves
            .iter()
            .rposition(|leaf| leaf.is_here && leaf.entry.run.as_ref().is_some_and(|run| run.as_str() == "v"))
        {
            drop_one(log, at, how);
        }
        log.runs.retain(|run| run.as_str() != "v");
        if let Some(map) = &mut log.map {
            map.paths.remove(&run_name("v"));
        }
    }),
    on_both("two records are exchanged", W, |_, log, _| {
        let (one, two) = (tick(log, "w", 1), tick(log, "w", 2));
        log.leaves.swap(one, two);
    }),
    on_both("a record is there twice", W, |_, log, _| {
        let at = tick(log, "w", 1);
        let again = log.leaves[at].clone();
        log.leaves.insert(at + 1, again);
    }),
    on_both("two records of one tick", W, |_, log, _| {
        let at = tick(log, "w", 1);
        let mut again = log.leaves[at].clone();
        again.record = refilled(&again.record, &parsed(r#"{"agent_id":"agent","seq":1}"#), 6);
        again.named = Digest([1; 32]);
        log.leaves.insert(at + 1, again);
    }),
    on_both("a record of another run replaces one", W, |_, log, _| {
        let (at, from) = (tick(log, "w", 2), tick(log, "v", 2));
        let record = log.leaves[from].record.clone();
        put(log, at, record);
    }),
    on_both("a record of another run is moved to this one", W, |_, log, _| {
        let (at, from) = (tick(log, "w", 2), tick(log, "v", 2));
        let header = log.leaves[at].record.header().clone();
        let record = relinked(&log.leaves[from].record, header);
        put(log, at, record);
    }),
    on_both("a record of another store replaces one", W, |stock, log, _| {
        let (at, other) = (tick(log, "w", 2), &stock.other.1);
        let is_it =
            |record: &&Record| record.header().tick == Some(2) && record.header().run == Some(run_name("w"));
        let record = other.iter().find(is_it).expect("the other store has the tick").clone();
        put(log, at, record);
    }),
    on_bundle("the record lines of another bundle", NO_KEY, W, nothing, |stock, bundle| {
        let records = stock.bundles[V].records.iter().cycle().cloned();
        let records = records.take(bundle.records.len()).collect();
        written(stock, Bundle { records, ..bundle })
    }),
    on_bundle("record lines are exchanged", NO_KEY, W, nothing, |stock, mut bundle| {
        bundle.records.swap(1, 2);
        written(stock, bundle)
    }),
    on_bundle(
        "an older map, and later records",
        NO_KEY,
        W,
        |stock, log, _| {
            for at in log.places(None, Kind::Map) {
                log.leaves[at].is_here = false;
            }
            log.leaves[stock.older_size() - 1].is_here = true;
            log.map.clone_from(&stock.older.map);
        },
        written,
    ),
    on_bundle("the line of an older map", NO_KEY, W, nothing, |stock, bundle| {
        written(stock, Bundle { map: stock.older.map.clone(), ..bundle })
    }),
    on_bundle("the line of a map of another store", EACH, W, nothing, |stock, bundle| {
        written(stock, Bundle { map: stock.other.0.map.clone(), ..bundle })
    }),
    on_bundle("a path of another run", EACH, ALL, nothing, |stock, mut bundle| {
        if let Some(map) = &mut bundle.map {
            let other = map.paths[&run_name("v")].clone();
            map.paths.insert(run_name("w"), other);
        }
        written(stock, bundle)
    }),
    on_bundle(
        "a path whose leaf counts less",
        EACH,
        V,
        |_, log, _| {
            let at = last_tick(log, "v");
            log.leaves[at].is_here = false;
        },
        |stock, mut bundle| {
            let path = bundle.map.as_mut().and_then(|map| map.paths.get_mut(&run_name("v"))).expect("a path");
            path.leaf.transitions -= 1;
            written(stock, bundle)
        },
    ),
    Attack {
        name: "a false map, and the record that it does not count is left out",
        means: &[Signs],
        of_stores: true,
        base: V,
        edit: |_, log, _| {
            let at = last_tick(log, "v");
            log.hide_from_map(at);
        },
        last: written,
    },
    on_bundle("the header names fewer runs", EACH, ALL, |_, log, _| log.runs.truncate(1), written),
    on_bundle(
        "the header names a run that is not here",
        EACH,
        W,
        |_, log, _| {
            log.runs.push(run_name("x"));
        },
        written,
    ),
    on_bundle("the header names another key", EACH, W, nothing, |stock, bundle| {
        let key = stranger(stock).verifier_key().to_string();
        written(stock, Bundle { key, ..bundle })
    }),
    on_bundle("the header names another store", EACH, W, nothing, |stock, bundle| {
        written(stock, Bundle { store: store_id(8), ..bundle })
    }),
    on_bundle("the header names another size", EACH, W, nothing, |_, bundle| {
        let (size, other) = (format!("\"size\":{},", bundle.size), format!("\"size\":{},", bundle.size + 1));
        replaced(bundle, &size, &other)
    }),
    on_bundle("the header names an older draft", EACH, W, nothing, |_, bundle| {
        replaced(bundle, "\"draft\":3", "\"draft\":2")
    }),
    on_bundle("the checkpoint is older", NO_KEY, W, nothing, |stock, bundle| {
        written(stock, Bundle { checkpoint: stock.older.checkpoint.clone(), ..bundle })
    }),
    on_bundle("the checkpoint is of another store", NO_KEY, W, nothing, |stock, bundle| {
        written(stock, Bundle { checkpoint: stock.other.0.checkpoint.clone(), ..bundle })
    }),
    on_bundle(
        "the checkpoint is signed by another key of the same name",
        NO_KEY,
        W,
        nothing,
        |stock, bundle| {
            let root = bundle.root().expect("a root");
            let checkpoint = Checkpoint::new(&stock.info.id.origin(), bundle.size, root).expect("an origin");
            let note = checkpoint.sign(&stranger(stock)).expect("a key of this origin");
            written(stock, Bundle { checkpoint: note.to_string(), ..bundle })
        },
    ),
    on_bundle("the checkpoint is a text without signature", NO_KEY, W, nothing, |stock, bundle| {
        written(stock, Bundle { checkpoint: "signed".to_owned(), ..bundle })
    }),
    Attack {
        name: "the log is rolled back to what was signed before",
        means: &[Edits],
        of_stores: true,
        base: W,
        edit: roll_back,
        last: written,
    },
    Attack {
        name: "the whole log is rewritten under another key",
        means: &[Seals],
        of_stores: true,
        base: W,
        edit: under_another_key,
        last: written,
    },
    on_bundle(
        "a value is withheld",
        NO_KEY,
        W,
        |_, log, _| {
            let at = tick(log, "w", 1);
            withhold(log, at, &["/intent"]);
        },
        written,
    ),
    on_bundle(
        "all values of a refusal are withheld",
        NO_KEY,
        W,
        |_, log, _| {
            let at = at(log, "w", Kind::Refusal, None);
            withhold(log, at, &["/agent_id", "/reason", "/intent", "/seq"]);
        },
        written,
    ),
    on_bundle(
        "more is withheld than the header says",
        NO_KEY,
        WITHHELD,
        |_, log, _| {
            let at = tick(log, "w", 3);
            withhold(log, at, &["/intent"]);
        },
        written,
    ),
    on_bundle(
        "`although` is taken from the header",
        NO_KEY,
        WITHHELD,
        |_, log, _| {
            log.although.clear();
        },
        written,
    ),
    on_both("a value that was erased is put back", ERASED, |stock, log, _| {
        let at = tick(log, "e", 1);
        put(log, at, stock.unerased.clone());
    }),
    on_both("an erased value is replaced", ERASED, |stock, log, _| {
        let at = tick(log, "e", 1);
        let record = relinked(&stock.unerased, log.leaves[at].record.header().clone());
        put(log, at, record);
        content_with(log, at, "goal_id", Value::from("another"));
    }),
    on_both("a map that counts nothing is the newest", ALL, |_, log, _| {
        let at = log.places(None, Kind::Map).pop().expect("a map");
        let header = log.leaves[at].record.header().clone();
        let body = body_of(&parsed(r#"{"size":1}"#), 3);
        let record = Record::seal(header, body).expect("a map");
        put(log, at, record);
        log.has_own_map = true;
    }),
];
