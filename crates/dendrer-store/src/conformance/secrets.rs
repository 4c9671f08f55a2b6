//! Encrypted bytes: they come back, change only if what was given holds, and are no part of the log.

use dendrer_object::record::Kind;
use dendrer_object::{Code, Digest};

use super::{Case, Scribe, Subject, info, name, noise, nothing, pointer, try_each};
use crate::store::{Given, Head, NewSecrets, SECRET_SIZE_MAX, Store};

/// Tries the part that keeps encrypted bytes.
pub fn hides(subject: &dyn Subject) {
    let cases: &[Case] = &[
        secrets_come_back_until_they_are_destroyed,
        secrets_change_only_if_what_was_given_holds,
        secrets_are_no_part_of_the_log,
        secrets_come_with_the_records_that_name_them,
    ];
    try_each(subject, cases);
}

const ALWAYS: Given<'static> = Given { there: &[], absent: &[], only: None };

fn secrets_change_only_if_what_was_given_holds(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let [a, b, c] = [1, 2, 3].map(|byte| Digest([byte; 32]));
    store.put_secrets(&[(a, b"a".to_vec()), (b, b"b".to_vec())], ALWAYS).expect("put works");
    let new = [(a, b"new".to_vec()), (c, b"c".to_vec())];
    let fails = [
        Given { there: &[a, c], ..ALWAYS },
        Given { absent: &[c, b], ..ALWAYS },
        Given { only: Some(&[a]), ..ALWAYS },
        Given { only: Some(&[]), there: &[a], absent: &[c] },
    ];
    for given in fails {
        assert!(!store.put_secrets(&new, given).expect("put works"), "{given:?}");
        assert!(!store.remove_secrets(&[a, b], given).expect("remove works"), "{given:?}");
        assert_eq!(store.secrets().expect("secrets works"), [a, b], "{given:?}");
        assert_eq!(store.get_secret(&a).expect("get works").as_deref(), Some(&b"a"[..]), "{given:?}");
    }
    let holds = Given { there: &[a, b], absent: &[c], only: Some(&[a, b, c]) };
    assert!(store.put_secrets(&new, holds).expect("put works"));
    assert!(store.remove_secrets(&[b], Given { absent: &[], ..holds }).expect("remove works"));
    assert_eq!(store.secrets().expect("secrets works"), [a, c]);
    assert_eq!(store.get_secret(&a).expect("get works").as_deref(), Some(&b"new"[..]));
}

fn secrets_come_back_until_they_are_destroyed(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let [a, b, c] = [Digest([1; 32]), Digest([0xab; 32]), Digest([0xff; 32])];
    let bytes = |seed: u64, size: usize| noise(size, seed).into_bytes();
    assert_eq!(store.secrets().expect("secrets works"), []);
    assert_eq!(store.get_secret(&a).expect("get works"), None);
    store.remove_secrets(&[a], ALWAYS).expect("a name without bytes is passed over");
    let all = [(b, bytes(1, 40)), (a, Vec::new()), (c, bytes(2, SECRET_SIZE_MAX))];
    assert!(store.put_secrets(&all, ALWAYS).expect("put works"));
    let check = |store: &dyn Store, expected: &[(Digest, Vec<u8>)]| {
        let names: Vec<Digest> = expected.iter().map(|(name, _)| *name).collect();
        assert_eq!(store.secrets().expect("secrets works"), names, "in order");
        for (name, bytes) in expected {
            assert!(store.get_secret(name).expect("get works").as_ref() == Some(bytes), "{name}");
        }
    };
    let [(_, of_b), (_, of_a), (_, of_c)] = all;
    check(&*store, &[(a, of_a.clone()), (b, of_b), (c, of_c.clone())]);
    // Another one in its place, shorter and longer.
    for of_b in [bytes(3, 7), bytes(4, 900)] {
        store.put_secrets(&[(b, of_b.clone())], ALWAYS).expect("put works");
        check(&*store, &[(a, of_a.clone()), (b, of_b), (c, of_c.clone())]);
    }
    let of_b = bytes(4, 900);
    let too_large = [(a, b"new".to_vec()), (b, vec![0; SECRET_SIZE_MAX + 1])];
    assert_eq!(store.put_secrets(&too_large, ALWAYS).expect_err("it is too large").code(), Code::E0601);
    check(&*store, &[(a, of_a.clone()), (b, of_b.clone()), (c, of_c.clone())]);
    store.put_secrets(&[], ALWAYS).expect("nothing is fine");
    store.remove_secrets(&[c, a, a], ALWAYS).expect("remove works");
    assert_eq!(store.get_secret(&a).expect("get works"), None);
    check(&*store, &[(b, of_b.clone())]);
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check(&*store, &[(b, of_b)]);
    }
}

fn secrets_are_no_part_of_the_log(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let records = [scribe.begin("r"), scribe.step("r")];
    store.commit(&records).expect("they fit");
    let tree = store.tree();
    store.put_secrets(&[(Digest([3; 32]), b"ciphertext".to_vec())], ALWAYS).expect("put works");
    assert_eq!((store.tree(), store.refresh().expect("refresh works")), (tree, tree.size));
    // Commits and erasures leave the bytes.
    let step = scribe.step("r");
    store.commit(std::slice::from_ref(&step)).expect("it fits");
    let erase = scribe.beside(Kind::Erase, "r", nothing());
    store.erase(&erase, &[(1, vec![pointer("/agent_id")])]).expect("it can be erased");
    let found = store.get_secret(&Digest([3; 32])).expect("get works");
    assert_eq!(found.as_deref(), Some(&b"ciphertext"[..]));
}

fn secrets_come_with_the_records_that_name_them(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let [a, b, c] = [1, 2, 3].map(|byte| Digest([byte; 32]));
    let new = |items: &[(Digest, &[u8])], there: &[Digest]| NewSecrets {
        items: items.iter().map(|(name, bytes)| (*name, bytes.to_vec())).collect(),
        there: there.to_vec(),
    };
    let group = [scribe.begin("r"), scribe.step("r")];
    let positions =
        store.append_with(&group, &[], &new(&[(a, b"of a"), (b, &[7; 2000])], &[])).expect("it fits");
    assert_eq!(positions, 0..2);
    let step = [scribe.step("r")];
    // Nothing of a group is written if a name has nothing.
    let gone = store.append_with(&step, &[], &new(&[(a, b"not put")], &[b, c])).expect_err("c has none");
    assert_eq!((gone.code(), store.tree().size), (Code::E0407, 2));
    let moved = [(name("r"), Head { tick: Some(9), id: Digest([9; 32]) })];
    let stale = store.append_with(&step, &moved, &new(&[(c, b"not put")], &[])).expect_err("r has moved");
    assert_eq!((stale.code(), store.tree().size), (Code::E0407, 2));
    let none = store.append_with(&step, &[], &new(&[(b, b"")], &[])).expect_err("no byte");
    assert_eq!((none.code(), store.tree().size), (Code::E0601, 2));
    store.remove_secrets(&[c], ALWAYS).expect("remove works");
    // Again, in the place of what is there, whichever way that came.
    store.append_with(&step, &[], &new(&[(b, b"new b"), (c, b"of c")], &[a, b])).expect("it fits");
    let of = |store: &dyn Store, name: &Digest| store.get_secret(name).expect("get works");
    assert_eq!(of(&*store, &b).as_deref(), Some(&b"new b"[..]));
    assert!(
        store
            .put_secrets(&[(a, b"new a".to_vec())], Given { only: Some(&[a, b, c]), ..ALWAYS })
            .expect("put works")
    );
    store.remove_secrets(&[b], ALWAYS).expect("remove works");
    let check = |store: &dyn Store| {
        assert_eq!(store.secrets().expect("secrets works"), [a, c]);
        assert_eq!(of(store, &a).as_deref(), Some(&b"new a"[..]));
        assert_eq!(of(store, &b), None);
        assert_eq!(of(store, &c).as_deref(), Some(&b"of c"[..]));
        assert_eq!(store.tree().size, 3);
    };
    check(&*store);
    let ticket = store.submit(&[]).expect("it is synced");
    store.wait(ticket).expect("it is synced");
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check(&*store);
    }
}
