use super::*;
use crate::record::{Author, Body, Header, Seed, cut};
use crate::time::Timestamp;

const STORE: StoreId = StoreId([7; 16]);
const WRITER: Digest = Digest([9; 32]);
const ROOT: Digest = WRITER;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&STORE.origin(), [seed; 32]).unwrap()
}

fn record(content: &Value) -> Record {
    let header = Header {
        store: STORE,
        kind: Kind::Key,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Institution,
        ts: Timestamp::from_ms(0),
        links: Vec::new(),
        pack: None,
    };
    let fields = cut(content.as_object().unwrap());
    Record::seal(header, Body::commit(fields, Seed([0; 16])).unwrap()).unwrap()
}

fn note(size: u64, by: &SigningKey) -> SignedNote {
    Checkpoint::new(&STORE.origin(), size, ROOT).unwrap().sign(by).unwrap()
}

fn begun() -> LogKeys {
    LogKeys::new(STORE, key(1).verifier_key().clone())
}

fn taken(keys: &mut LogKeys, position: u64, content: &Value) -> Result<Option<KeyChange>, KeyFault> {
    keys.take(position, &record(content))
}

#[test]
fn a_key_signs_from_the_record_that_brought_it_to_the_next() {
    let mut keys = begun();
    let change =
        taken(&mut keys, 4, &rotation(STORE, (4, ROOT), &key(1), (&key(2), WRITER))).unwrap().unwrap();
    assert_eq!((change.before, change.checkpoint), ((4, ROOT), None));
    taken(&mut keys, 9, &rotation(STORE, (9, ROOT), &key(2), (&key(3), WRITER))).unwrap();
    for (size, seed) in [(0, 1), (4, 1), (5, 2), (9, 2), (10, 3), (99, 3)] {
        assert_eq!(keys.at(size), Some(key(seed).verifier_key()), "{size}");
        assert_eq!(keys.open(&note(size, &key(seed))).map(|opened| opened.size()), Ok(size));
        assert!(keys.open(&note(size, &key(seed % 3 + 1))).is_err(), "{size}");
    }
    assert_eq!(keys.follows(key(1).verifier_key()), KeyTrust::Follows);
    assert_eq!(keys.follows(key(4).verifier_key()), KeyTrust::Another);
}

#[test]
fn no_key_comes_without_the_signatures_it_takes() {
    let good = rotation(STORE, (4, ROOT), &key(1), (&key(2), WRITER));
    let with = |name: &'static str, value: Value| {
        let members = good.as_object().unwrap().iter().map(|(name, value)| (name.to_string(), value.clone()));
        Value::record(members.chain([(name.to_owned(), value)]))
    };
    let swapped = rotation(STORE, (4, ROOT), &key(2), (&key(1), WRITER));
    let cases = [
        with("signatures", Value::array([])),
        with(
            "signatures",
            rotation(STORE, (4, ROOT), &key(3), (&key(2), WRITER)).get("signatures").unwrap().clone(),
        ),
        with("signatures", swapped.get("signatures").unwrap().clone()),
        with("root", Digest([8; 32]).into()),
        with("new", key(3).verifier_key().to_string().into()),
        with("reason", "added".into()),
        // Of another store, another place, another key, back to a key of before.
        rotation(StoreId([8; 16]), (4, ROOT), &key(1), (&key(2), WRITER)),
        rotation(STORE, (5, ROOT), &key(1), (&key(2), WRITER)),
        rotation(STORE, (4, ROOT), &key(3), (&key(2), WRITER)),
        rotation(STORE, (4, ROOT), &key(1), (&key(1), WRITER)),
        // A recovery without a checkpoint of the key in force, or with one of a longer log.
        recovery(STORE, (4, ROOT), (key(1).verifier_key(), &note(4, &key(3))), (&key(2), WRITER), "lost"),
        recovery(STORE, (4, ROOT), (key(1).verifier_key(), &note(5, &key(1))), (&key(2), WRITER), "lost"),
        recovery(STORE, (4, ROOT), (key(3).verifier_key(), &note(4, &key(1))), (&key(2), WRITER), "lost"),
        revocation(STORE, (4, ROOT), (key(1).verifier_key(), 2), &key(1), "stolen"),
        revocation(STORE, (4, ROOT), (key(2).verifier_key(), 2), &key(1), "stolen"),
    ];
    for content in &cases {
        let mut keys = begun();
        assert!(taken(&mut keys, 4, content).is_err(), "{content}");
        assert_eq!(keys, begun());
    }
    assert!(taken(&mut begun(), 4, &good).is_ok());
    let closed = record(&good).without(&["/root".parse().unwrap()]);
    assert_eq!(begun().take(4, &closed), Err(KeyFault::Closed));
}

#[test]
fn a_recovery_is_told_to_those_who_know_the_key_before() {
    let mut keys = begun();
    let content =
        recovery(STORE, (4, ROOT), (key(1).verifier_key(), &note(3, &key(1))), (&key(2), WRITER), "lost");
    let change = taken(&mut keys, 4, &content).unwrap().unwrap();
    assert_eq!(change.checkpoint, Some((3, ROOT)));
    taken(&mut keys, 6, &rotation(STORE, (6, ROOT), &key(2), (&key(3), WRITER))).unwrap();
    assert_eq!(keys.follows(key(1).verifier_key()), KeyTrust::Without(4));
    assert_eq!(keys.follows(key(2).verifier_key()), KeyTrust::Follows);
    assert_eq!(keys.recovered_at(), Some(4));
    let how: Vec<KeyHow> = keys.spans().iter().map(KeySpan::how).collect();
    assert_eq!(how, [KeyHow::First, KeyHow::Recovered, KeyHow::Rotated]);
}

#[test]
fn a_revoked_key_signs_nothing_beyond_the_size() {
    let mut keys = begun();
    taken(&mut keys, 8, &rotation(STORE, (8, ROOT), &key(1), (&key(2), WRITER))).unwrap();
    // Only the key in force takes back what another one signed.
    let by_thief = revocation(STORE, (9, ROOT), (key(1).verifier_key(), 5), &key(1), "mine");
    assert!(taken(&mut keys, 9, &by_thief).is_err());
    let content = revocation(STORE, (9, ROOT), (key(1).verifier_key(), 5), &key(2), "stolen");
    taken(&mut keys, 9, &content).unwrap();
    assert!(keys.open(&note(5, &key(1))).is_ok());
    assert!(keys.open(&note(6, &key(1))).is_err());
    assert!(keys.open(&note(9, &key(2))).is_ok());
    // The change to the key in force was signed beyond that size, so it says nothing to who knows the revoked key alone.
    assert_eq!(keys.follows(key(1).verifier_key()), KeyTrust::Without(8));
    // A later revocation never gives a signature back.
    let later = revocation(STORE, (10, ROOT), (key(1).verifier_key(), 8), &key(2), "less");
    taken(&mut keys, 10, &later).unwrap();
    assert!(keys.open(&note(6, &key(1))).is_err());
}
