//! Edits that are drawn: one to three at a time, of any record, line or header, with the means of a forger.

use dendrer_object::bundle::Bundle;
use dendrer_object::note::SigningKey;
use dendrer_object::record::Header;
use dendrer_object::{Pointer, RunName, Timestamp, Value};
use dendrer_store::StoreInfo;

use super::log::{ForgedLog, Leaf, Means, refilled, relinked};
use super::stock::Stock;
use crate::stores::{Dice, run_name, store_id};

/// A bundle that was forged.
#[derive(Debug, Clone)]
pub struct DrawnForgery {
    /// The edits.
    pub what: String,
    /// The means.
    pub means: Means,
    /// The number of the honest bundle.
    pub base: usize,
    /// The text.
    pub text: Vec<u8>,
}

/// Draws a forgery.
pub fn draw(stock: &Stock, dice: &mut Dice) -> DrawnForgery {
    let base = pick(dice, stock.bundles.len());
    let means = [Means::Edits, Means::Seals, Means::Seals, Means::Signs][pick(dice, 4)];
    let mut log = stock.log(base);
    let mut what = vec![format!("{means:?} of bundle {base}")];
    for _ in 0..[1, 1, 1, 2, 3][pick(dice, 5)] {
        what.push(edit(stock, &mut log, dice));
    }
    log.finish(means, &stock.key);
    let mut bundle = log.bundle();
    if pick(dice, 6) == 0 {
        what.push(edit_bundle(stock, &mut bundle, dice).to_owned());
    }
    let mut text = bundle.write(&|_| vec![0]);
    if pick(dice, 8) == 0 {
        what.push(edit_lines(stock, &mut text, dice));
    }
    DrawnForgery { what: what.join(", "), means, base, text }
}

fn pick(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.below(below as u64)).expect("below a length")
}

/// Changes the records of a log, or which of them are here.
fn edit(stock: &Stock, log: &mut ForgedLog, dice: &mut Dice) -> String {
    let here: Vec<usize> = (0..log.leaves.len()).filter(|at| log.leaves[*at].is_here).collect();
    if here.len() < 2 {
        return "too little is left".to_owned();
    }
    let (at, other) = (here[pick(dice, here.len())], here[pick(dice, here.len())]);
    let any = pick(dice, log.leaves.len());
    let what = match pick(dice, 16) {
        0 | 1 | 14 | 15 => {
            log.leaves[at].is_here = false;
            "left out"
        }
        2 => {
            log.remove(at);
            "removed"
        }
        3 => {
            log.leaves.swap(at, other);
            "exchanged"
        }
        4 => {
            let again = log.leaves[at].clone();
            log.leaves.insert(other, again);
            "doubled"
        }
        5 => {
            log.leaves[at].record = log.leaves[any].record.clone();
            "record of another place"
        }
        6 => {
            let others = &stock.other.1;
            log.leaves[at].record = others[pick(dice, others.len())].clone();
            "record of another store"
        }
        7 => {
            let header = log.leaves[at].record.header().clone();
            log.leaves[at].record = relinked(&log.leaves[any].record, header);
            "content of another record"
        }
        8 => {
            log.leaves.truncate(at + 1);
            "tail cut"
        }
        9 => edit_content(&mut log.leaves[at], dice),
        10 => edit_header(&mut log.leaves[at], stock, dice),
        11 => withhold(&mut log.leaves[at], dice),
        12 => {
            log.leaves[any].is_here = true;
            "put in"
        }
        _ => {
            log.hide_from_map(at);
            "hidden from the map"
        }
    };
    format!("{what} {at}")
}

fn edit_content(leaf: &mut Leaf, dice: &mut Dice) -> &'static str {
    let mut content = leaf.record.content();
    let parsed = |text: &str| dendrer_object::json::parse_canonical(text.as_bytes()).expect("canonical JSON");
    let (name, value) = [
        ("goal_id", Value::from("another")),
        ("agent_id", Value::from("institution")),
        ("agent_id", Value::from("someone")),
        ("delta", parsed(r#"[{"set":"/n","value":77}]"#)),
        ("delta", parsed("[]")),
        ("seq", Value::from(9_u64)),
        ("verifier", Value::from("none")),
    ][pick(dice, 7)]
    .clone();
    if let Value::Object(object) = &mut content {
        object.set(name, value);
    }
    leaf.record = refilled(&leaf.record, &content, 5);
    "content"
}

fn edit_header(leaf: &mut Leaf, stock: &Stock, dice: &mut Dice) -> &'static str {
    let other = stock.records[pick(dice, stock.records.len())].header().clone();
    let own = leaf.record.header().clone();
    let (header, what) = match pick(dice, 7) {
        0 => (Header { author: other.author, ..own }, "author"),
        1 => (Header { type_name: other.type_name, ..own }, "type"),
        2 => (Header { ts: Timestamp::from_ms(own.ts.ms() / 2), ..own }, "time"),
        3 => (Header { tick: own.tick.map(|tick| tick + 1), ..own }, "tick"),
        4 => (Header { prev: other.prev, ..own }, "prev"),
        5 => (Header { head: other.head, ..own }, "head"),
        _ => (Header { run: other.run, ..own }, "run"),
    };
    leaf.record = relinked(&leaf.record, header);
    what
}

fn withhold(leaf: &mut Leaf, dice: &mut Dice) -> &'static str {
    let fields = leaf.record.body().fields();
    let places: Vec<Pointer> = (0..=pick(dice, 2))
        .filter_map(|_| Some(fields.get(pick(dice, fields.len().max(1)))?.pointer.clone()))
        .collect();
    leaf.record = leaf.record.without(&places);
    "withheld"
}

/// Changes the lines of a bundle that no digest covers, or that have a digest of their own.
fn edit_bundle(stock: &Stock, bundle: &mut Bundle, dice: &mut Dice) -> &'static str {
    let names: Vec<RunName> = ["w", "v", "f", "e"].map(run_name).into();
    let run = names[pick(dice, 4)].clone();
    match pick(dice, 9) {
        0 => {
            bundle.runs.retain(|name| *name != run);
            "run not named"
        }
        1 => {
            bundle.runs.reverse();
            "runs in another order"
        }
        2 => {
            bundle.runs.push(run);
            "run named"
        }
        3 => {
            bundle.although = vec!["3:/intent".to_owned()];
            "although"
        }
        4 => {
            bundle.although.clear();
            "no although"
        }
        5 => {
            bundle.checkpoint.clone_from(&stock.older.checkpoint);
            "older checkpoint"
        }
        6 => {
            let key = SigningKey::from_seed(&stock.info.id.origin(), [99; 32]).expect("an origin");
            bundle.key = StoreInfo::new(stock.info.id, key.verifier_key().clone()).key.to_string();
            "another key"
        }
        7 => {
            bundle.store = store_id(8);
            "another store"
        }
        _ => edit_map(stock, bundle, &run, dice),
    }
}

/// Changes the line of the map.
fn edit_map(stock: &Stock, bundle: &mut Bundle, run: &RunName, dice: &mut Dice) -> &'static str {
    let other = bundle.map.as_ref().and_then(|map| map.paths.values().next().cloned());
    let path = bundle.map.as_mut().and_then(|map| map.paths.get_mut(run));
    match (pick(dice, 4), path, other) {
        (0, ..) => {
            bundle.map.clone_from(&stock.older.map);
            "older map"
        }
        (1, ..) => {
            bundle.map.clone_from(&stock.other.0.map);
            "map of another store"
        }
        (2, Some(path), Some(other)) => {
            *path = other;
            "path of another run"
        }
        (_, Some(path), _) => {
            path.leaf.transitions = path.leaf.transitions.saturating_sub(1);
            "leaf counts less"
        }
        (_, None, _) => {
            bundle.map = None;
            "no map"
        }
    }
}

/// Drops, doubles, exchanges or splices whole lines.
fn edit_lines(stock: &Stock, text: &mut Vec<u8>, dice: &mut Dice) -> String {
    let other = stock.bundles[pick(dice, stock.bundles.len())].write(&|_| vec![0]);
    let split = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (mut lines, others): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (split(text), split(&other));
    let (at, to) = (pick(dice, lines.len()), pick(dice, lines.len()));
    let what = match pick(dice, 5) {
        0 => {
            lines.remove(at);
            "line dropped"
        }
        1 => {
            let again = lines[at].clone();
            lines.insert(to, again);
            "line doubled"
        }
        2 => {
            lines.swap(at, to);
            "lines exchanged"
        }
        3 => {
            lines.truncate(at);
            "lines cut"
        }
        _ => {
            lines[at] = others[pick(dice, others.len())].clone();
            "line of another bundle"
        }
    };
    *text = lines.concat();
    what.to_owned()
}
