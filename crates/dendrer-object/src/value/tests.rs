use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::digest::Digest;

fn small_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 60, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40).prop_map(Value::array),
            prop::collection::btree_map("[a-z]{0,2}", inner, 0..40).prop_map(Value::record),
        ]
    })
}

/// The state root computed from the definition in `docs/format.md`, without trees or caches.
fn slow_digest(value: &Value) -> Digest {
    match value {
        Value::Object(object) => {
            let mut leaves: Vec<(Digest, Digest)> = object
                .entries()
                .map(|entry| {
                    let key = Digest::of(entry.key.as_bytes());
                    let begin = match &entry.salt {
                        None => b"dendrer/state/member/v1\n".to_vec(),
                        Some(salt) => [b"dendrer/state/salted-member/v1\n", &salt[..]].concat(),
                    };
                    let preimage = [&begin[..], &key.0, &slow_digest(&entry.value).0].concat();
                    (key, Digest::of(&preimage))
                })
                .collect();
            leaves.sort();
            slow_trie(&leaves, 0).unwrap_or_else(|| Digest::of(b"dendrer/state/empty-object/v1\n"))
        }
        Value::Array(array) => {
            let mut level: Vec<Digest> = array.iter().map(slow_digest).collect();
            let node = |chunk: &[Digest]| {
                let mut preimage = b"dendrer/state/array-node/v1\n".to_vec();
                chunk.iter().for_each(|d| preimage.extend_from_slice(&d.0));
                Digest::of(&preimage)
            };
            level = if level.is_empty() { vec![node(&[])] } else { level.chunks(16).map(node).collect() };
            while level.len() > 1 {
                level = level.chunks(16).map(node).collect();
            }
            let len = (array.len() as u64).to_be_bytes();
            Digest::of(&[b"dendrer/state/array/v1\n", &len[..], &level[0].0].concat())
        }
        scalar => {
            let mut preimage = b"dendrer/state/scalar/v1\n".to_vec();
            crate::json::write(scalar, &mut preimage);
            Digest::of(&preimage)
        }
    }
}

fn slow_trie(leaves: &[(Digest, Digest)], level: usize) -> Option<Digest> {
    if leaves.len() < 2 {
        return leaves.first().map(|leaf| leaf.1);
    }
    let nibble = |d: &Digest| d.hex().as_bytes()[level];
    let mut bitmap = 0u16;
    let mut body = Vec::new();
    for digit in b"0123456789abcdef" {
        let group: Vec<_> = leaves.iter().filter(|leaf| nibble(&leaf.0) == *digit).copied().collect();
        if let Some(child) = slow_trie(&group, level + 1) {
            bitmap |= 1 << (*digit as char).to_digit(16).unwrap();
            body.extend_from_slice(&child.0);
        }
    }
    Some(Digest::of(&[b"dendrer/state/object-node/v1\n", &bitmap.to_be_bytes()[..], &body].concat()))
}

proptest! {
    #[test]
    fn the_digest_is_the_one_of_the_definition(value in small_value()) {
        prop_assert_eq!(value.digest(), slow_digest(&value));
        prop_assert_eq!(value.size(), value.to_string().len() as u64);
    }

    /// Leaves are hashed together where many are not known, whichever were known before.
    #[test]
    fn members_that_changed_between_two_digests_are_hashed_anew(
        value in small_value(), edits in prop::collection::vec(("[a-z]{0,2}", small_value(), any::<u8>()), 0..20),
    ) {
        let mut object = match value {
            Value::Object(object) => object,
            other => Value::record([("x", other)]).as_object().unwrap().clone(),
        };
        let mut earlier = Vec::new();
        for (key, value, how) in edits {
            match how % 5 {
                0 => object.set_salted(&key, value, [how; 16]),
                1 => drop(object.remove(&key)),
                2 => {
                    let before = object.get(&key).cloned();
                    let salt = object.entry(&key).and_then(|entry| entry.salt);
                    let found = object.value_mut(&key);
                    prop_assert_eq!(found.as_deref(), before.as_ref());
                    if let Some(found) = found {
                        *found = value.clone();
                        prop_assert_eq!(object.get(&key), Some(&value));
                        prop_assert_eq!(object.entry(&key).and_then(|entry| entry.salt), salt);
                    }
                }
                _ => object.set(&key, value),
            }
            if how > 200 {
                let digest = slow_digest(&Value::Object(object.clone()));
                prop_assert_eq!(object.digest(), digest);
                // An earlier clone keeps its content.
                earlier.push((object.clone(), digest, object.size()));
            }
        }
        for (object, digest, size) in earlier {
            prop_assert_eq!((slow_digest(&Value::Object(object.clone())), object.digest()), (digest, digest));
            prop_assert_eq!((Value::Object(object.clone()).to_string().len() as u64, object.size()), (size, size));
        }
        prop_assert_eq!(object.digest(), slow_digest(&Value::Object(object.clone())));
    }

    #[test]
    fn members_are_found_in_turn_and_in_any_order(
        names in prop::collection::btree_set("[a-cé😀]{0,9}", 0..60), asked in prop::collection::vec("[a-cé😀]{0,9}", 0..60),
    ) {
        let fresh = Value::record(names.iter().map(|name| (name.as_str(), Value::from(name.as_str()))));
        let mut changed = fresh.as_object().unwrap().clone();
        changed.set("another", Value::Null);
        for object in [fresh.as_object().unwrap(), &changed] {
            let mut next = 0;
            for name in names.iter().chain(&asked).chain(&names) {
                let expected = names.contains(name).then(|| Value::from(name.as_str()));
                prop_assert_eq!(object.get(name), expected.as_ref());
                let digest = Digest::of(name.as_bytes());
                prop_assert_eq!(object.get_in_turn(name, &digest, &mut next), expected.as_ref());
            }
        }
    }

    #[test]
    fn an_object_is_what_its_members_are_whatever_history_made_it(
        edits in prop::collection::vec(("[a-f]{1,2}", prop::option::of(any::<i32>())), 0..120),
    ) {
        let mut model = BTreeMap::new();
        let mut object = Object::default();
        for (key, value) in edits {
            match value {
                Some(value) => {
                    model.insert(key.clone(), value);
                    object.set(&key, Value::from(i64::from(value)));
                }
                None => {
                    let expected = model.remove(&key).map(|v| Value::from(i64::from(v)));
                    prop_assert_eq!(object.remove(&key), expected);
                }
            }
            prop_assert_eq!(object.len(), model.len());
            prop_assert_eq!(object.size(), Value::Object(object.clone()).to_string().len() as u64);
        }
        let fresh = Value::record(model.iter().map(|(k, v)| (k.as_str(), Value::from(i64::from(*v)))));
        prop_assert_eq!(&Value::Object(object.clone()), &fresh);
        prop_assert_eq!(object.digest(), fresh.digest());
        for (key, value) in &model {
            prop_assert_eq!(object.get(key), Some(&Value::from(i64::from(*value))));
        }
    }

    #[test]
    fn an_array_is_what_its_items_are_whatever_history_made_it(
        start in 0usize..300,
        edits in prop::collection::vec((any::<u8>(), any::<u16>()), 0..60),
    ) {
        let mut model: Vec<Value> = (0..start as u64).map(Value::from).collect();
        let mut array = Array::from(model.clone());
        for (kind, at) in edits {
            let value = Value::from(u64::from(at));
            match kind % 8 {
                0 if !model.is_empty() => {
                    let index = usize::from(at) % model.len();
                    prop_assert_eq!(array.remove(index), model.remove(index));
                }
                1..=3 if !model.is_empty() => {
                    let index = usize::from(at) % model.len();
                    model[index] = value.clone();
                    array.set(index, value);
                }
                _ => {
                    model.push(value.clone());
                    array.push(value);
                }
            }
        }
        prop_assert_eq!(array.len(), model.len());
        prop_assert!(array.iter().eq(model.iter()));
        for (index, value) in model.iter().enumerate() {
            prop_assert_eq!(array.get(index), Some(value));
        }
        prop_assert_eq!(array.get(model.len()), None);
        prop_assert_eq!(array.size(), Value::Array(array.clone()).to_string().len() as u64);
        prop_assert_eq!(array.digest(), Array::from(model).digest());
    }

    #[test]
    fn names_sort_by_utf16(a in "\\PC{0,4}", b in "\\PC{0,4}") {
        prop_assert_eq!(compare_names(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }
}

#[test]
fn arrays_grow_through_every_height() {
    let mut array = Array::default();
    for index in 0..5000u64 {
        array.push(Value::from(index));
        if [0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097].contains(&index) {
            assert_eq!(array.digest(), (0..=index).map(Value::from).collect::<Array>().digest(), "{index}");
        }
    }
    assert_eq!(array.get(4321), Some(&Value::from(4321u64)));
}

#[test]
fn a_salt_hides_the_leaf_and_nothing_else() {
    let plain = Value::record([("name", Value::from("Ada")), ("city", Value::from("Basel"))]);
    let mut salted = plain.as_object().unwrap().clone();
    salted.set_salted("name", Value::from("Ada"), [7; 16]);
    let mut other = plain.as_object().unwrap().clone();
    other.set_salted("name", Value::from("Ada"), [8; 16]);
    assert_ne!(plain.digest(), salted.digest());
    assert_ne!(salted.digest(), other.digest());
    assert_eq!(Value::Object(salted.clone()), plain, "a salt is not part of the value");

    let key = Digest::of(b"name");
    let leaf =
        [b"dendrer/state/salted-member/v1\n", &[7; 16][..], &key.0, &Value::from("Ada").digest().0].concat();
    let city = Digest::of(b"city");
    let city_leaf = [b"dendrer/state/member/v1\n", &city.0[..], &Value::from("Basel").digest().0].concat();
    let mut leaves = [(key, Digest::of(&leaf)), (city, Digest::of(&city_leaf))];
    leaves.sort();
    assert_eq!(salted.digest(), slow_trie(&leaves, 0).unwrap());
}

#[test]
fn changing_one_member_of_many_rehashes_a_path_and_not_the_object() {
    let mut object: Object =
        (0..2000u64).map(|n| (format!("key-{n}").into(), Value::from(n))).collect::<Object>();
    let before = object.digest();
    object.set("key-7", Value::from(7u64));
    assert_eq!(object.digest(), before, "the same content has the same digest");
    object.set("key-7", Value::from(8u64));
    assert_ne!(object.digest(), before);
}

/// So many that branches of several levels are hashed side by side, too, and more than are taken at once.
#[test]
fn thousands_of_members_have_the_digest_of_the_definition() {
    let member = |n: u64| match n % 3 {
        0 => Value::record([("n", Value::from(n)), ("text", Value::from("x".repeat(n as usize % 90)))]),
        1 => Value::array((0..n % 20).map(Value::from)),
        _ => Value::from("v".repeat(if n == 500 { 70_000 } else { n as usize % 200 })),
    };
    let names = (0..3000u64).map(|n| (format!("key-{n}").into(), member(n)));
    let mut object: Object = names.collect();
    let is_right = |object: &Object| object.digest() == slow_digest(&Value::Object(object.clone()));
    assert!(is_right(&object));
    for (changed, step) in [(1, 1), (15, 1), (17, 170), (300, 7), (2000, 1)] {
        for n in 0..changed {
            let key = format!("key-{}", n * step);
            match n % 3 {
                0 => object.set_salted(&key, member(n + 1), [n as u8; 16]),
                1 => drop(object.remove(&key)),
                _ => object.set(&key, member(n + 2)),
            }
        }
        assert!(is_right(&object), "{changed} changed");
    }
}

#[test]
fn the_size_of_what_shares_its_parts_is_known_without_walking_it() {
    let mut value = Value::from("x");
    for doubled in 1..=10u32 {
        value = Value::array([value.clone(), value]);
        assert_eq!(value.size(), value.to_string().len() as u64, "{doubled}");
    }
    (10..120).for_each(|_| value = Value::record([("a", value.clone()), ("b", value.clone())]));
    assert_eq!(value.size(), u64::MAX);
}
