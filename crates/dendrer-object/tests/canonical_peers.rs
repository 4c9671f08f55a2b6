//! Canonical JSON against published vectors and against another implementation.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed unwrap is a failed test; a skip is said aloud"
)]
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "published vectors are files")]

use std::path::Path;

use dendrer_object::json::{parse_canonical, parse_door, to_string, to_vec};
use dendrer_object::{Number, Value};

/// A generator that needs no crate and gives the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[test]
fn all_published_pairs_of_rfc_8785_hold() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/rfc8785-pairs.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: the published vectors are not at {}", path.display());
        return;
    };
    let mut count = 0;
    for line in text.lines() {
        let pair: serde_json::Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| pair[name].as_str().unwrap();
        let found = to_string(&parse_door(field("input").as_bytes()).unwrap());
        assert_eq!(found, field("output"), "{}", field("name"));
        assert_eq!(to_string(&parse_canonical(field("output").as_bytes()).unwrap()), field("output"));
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn a_hundred_thousand_doubles_are_written_as_the_peer_writes_them() {
    let mut random = Random(1);
    let mut compared = 0;
    while compared < 100_000 {
        let value = match random.below(4) {
            0 => f64::from_bits(random.next()),
            1 => random.below(1 << 53) as f64 / 10f64.powi(random.below(20) as i32),
            2 => (random.next() as i64 >> random.below(40)) as f64,
            _ => random.below(1_000_000) as f64 / 1000.0,
        };
        let Some(number) = Number::from_f64(value) else { continue };
        let peer = serde_json_canonicalizer::to_string(&value).unwrap();
        assert_eq!(number.to_string(), peer, "{value:e}");
        let again = Number::parse(&peer).unwrap();
        assert_eq!(again.to_string(), peer, "what was written reads back as itself");
        compared += 1;
    }
}

#[test]
fn ten_thousand_documents_are_written_as_the_peer_writes_them() {
    let mut random = Random(2);
    for _ in 0..10_000 {
        let document = document(&mut random, 4);
        let peer = serde_json_canonicalizer::to_vec(&document).unwrap();
        // White space, member order and escapes as a careless writer leaves them.
        let careless = serde_json::to_string_pretty(&document).unwrap();
        let ours = parse_door(careless.as_bytes()).unwrap();
        assert_eq!(String::from_utf8_lossy(&to_vec(&ours)), String::from_utf8_lossy(&peer));
        assert_eq!(parse_canonical(&peer), Ok(ours));
    }
}

/// A document that I-JSON can hold, without names that begin with `$`, which mean something to us.
fn document(random: &mut Random, depth: u64) -> serde_json::Value {
    match random.below(if depth == 0 { 5 } else { 7 }) {
        0 => serde_json::Value::Null,
        1 => (random.below(2) == 0).into(),
        2 => ((random.below(1 << 53) as i64) - (1 << 52)).into(),
        3 => {
            let value = f64::from_bits(random.next());
            serde_json::Number::from_f64(value)
                .filter(|_| value.abs() < 9e15 || value.abs() >= 1e21)
                .map_or(serde_json::Value::Null, Into::into)
        }
        4 => text(random).into(),
        5 => (0..random.below(6)).map(|_| document(random, depth - 1)).collect(),
        _ => {
            let members = (0..random.below(6)).map(|_| (text(random), document(random, depth - 1)));
            serde_json::Value::Object(members.collect())
        }
    }
}

fn text(random: &mut Random) -> String {
    (0..random.below(8))
        .map(|_| match random.below(6) {
            0 => char::from_u32(random.below(0x20) as u32).unwrap(),
            1 => ['"', '\\', '/', '\u{7f}', '\u{2028}', '\u{feff}'][random.below(6) as usize],
            2 => char::from_u32(0xe000 + random.below(0x1fff) as u32).unwrap(),
            3 => char::from_u32(0x1_0000 + random.below(0xf_0000) as u32).unwrap_or('x'),
            _ => char::from_u32(0x61 + random.below(26) as u32).unwrap(),
        })
        .collect()
}

#[test]
fn a_value_is_one_whatever_door_it_came_through() {
    let value = parse_door(br#"{"b":[1.0,1e0,1],"a":"\u0041"}"#).unwrap();
    assert_eq!(
        value,
        Value::record([("a", Value::from("A")), ("b", Value::array([1u64, 1, 1].map(Value::from)))])
    );
}
