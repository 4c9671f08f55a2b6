//! What a record and a proof are made of, against slow and obvious ways of making the same.

use dendrer_object::json::{parse_tagged, to_vec};
use dendrer_object::merkle::proof::{
    consistency_proof, inclusion_proof, verify_consistency, verify_inclusion,
};
use dendrer_object::merkle::{Peaks, from_leaves, leaf_hash};
use dendrer_object::record::{Author, Body, Header, Kind, Part, Seed, cut};
use dendrer_object::{Digest, Pointer, Record, StoreId, Timestamp, Value};

/// Content as the fields of a record: an object, or a list of an object and places whose values are withheld.
pub fn body(data: &[u8]) {
    let Ok(value) = parse_tagged(data) else { return };
    let (content, places) = match value.as_array() {
        Some(pair) => (pair.get(0).cloned().unwrap_or(Value::Null), pair.iter().skip(1).cloned().collect()),
        None => (value.clone(), Vec::new()),
    };
    let Some(content) = content.as_object() else { return };
    let seed = Seed(Digest::of(data).0[..16].try_into().expect("16 of 32 bytes"));
    let fields = cut(content);
    let Ok(body) = Body::commit(fields.clone(), seed) else { return };
    assert_eq!(body.fields().len(), fields.len());
    for (index, (pointer, value)) in fields.iter().enumerate() {
        let field = &body.fields()[index];
        assert_eq!((&field.pointer, body.text(field)), (pointer, Some(&to_vec(value)[..])));
        let salt = body.salt(index).expect("nothing is withheld");
        assert_eq!(salt.0, slow_salt(seed, index), "salt {index}");
        assert_eq!(field.digest, slow_digest(salt.0, pointer, value), "{pointer}");
    }
    let whole = seal(body);
    assert_eq!(whole.content(), Value::Object(content.clone()), "what was cut is put together again");
    let withheld: Vec<Pointer> =
        places.iter().filter_map(|place: &Value| place.as_str()?.parse().ok()).collect();
    let less = whole.without(&withheld);
    assert_eq!(less.id(), whole.id(), "commitments stay");
    let hidden = |pointer: &Pointer| withheld.iter().any(|place| place.contains(pointer));
    let parts = less.body().fields().iter().enumerate().map(|(index, field)| {
        let part = match less.body().text(field) {
            Some(text) => Part::Open(text, less.body().salt(index)),
            None => Part::Closed(field.digest),
        };
        assert_eq!(less.body().text(field).is_none(), hidden(&field.pointer), "{}", field.pointer);
        (field.pointer.clone(), part)
    });
    let again =
        Body::of_parts(parts.collect(), less.body().seed()).expect("what was taken apart fits together");
    assert_eq!(seal(again).id(), whole.id());
}

fn seal(body: Body) -> Record {
    let header = Header {
        store: StoreId([7; 16]),
        kind: Kind::Register,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Institution,
        ts: Timestamp::from_ms(0),
        links: vec![],
        pack: None,
    };
    Record::seal(header, body).expect("the header fits its kind")
}

/// A salt as docs/format.md says it in words: half of the digest of a tag, the seed and the number of the pair.
fn slow_salt(seed: Seed, index: usize) -> [u8; 16] {
    let mut preimage = b"dendrer/salt/v1\n".to_vec();
    preimage.extend_from_slice(&seed.0);
    preimage.extend_from_slice(&(index as u32 / 2).to_be_bytes());
    let from = 16 * (index % 2);
    ring_digest(&preimage)[from..from + 16].try_into().expect("16 bytes")
}

fn slow_digest(salt: [u8; 16], pointer: &Pointer, value: &Value) -> Digest {
    let array = Value::array([
        Value::from(slow_base64url(&salt).as_str()),
        Value::from(pointer.as_str()),
        value.clone(),
    ]);
    Digest(ring_digest(slow_base64url(&to_vec(&array)).as_bytes()))
}

fn slow_base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letter = |at: usize| LETTERS[(0..6).fold(0, |sum, more| sum << 1 | bit(at + more)) as usize] as char;
    (0..bytes.len() * 8).step_by(6).map(letter).collect()
}

fn ring_digest(bytes: &[u8]) -> [u8; 32] {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().try_into().expect("32 bytes")
}

/// Proofs of a log: two sizes, an index, and changes of the right proof. A proof is accepted where it is the right one, and
/// nowhere else; roots are those of the definition in RFC 6962.
pub fn proof(data: &[u8]) {
    let Some((&[old, new, index, what], changes)) = data.split_first_chunk() else { return };
    let new = u64::from(new) % 71;
    let old = u64::from(old) % 71;
    let index = u64::from(index) % 72;
    let leaves: Vec<Digest> = (0..new.max(old)).map(|leaf| leaf_hash(&leaf.to_le_bytes())).collect();
    let node = from_leaves(&leaves);
    let root = |size: u64| slow_root(&leaves[..size as usize]);
    let mut peaks = Peaks::new();
    leaves[..new as usize].iter().for_each(|leaf| peaks.push(*leaf));
    assert_eq!(peaks.root(), root(new));
    let inclusion = what & 1 == 0;
    let right = if inclusion { inclusion_proof(index, new, node) } else { consistency_proof(old, new, node) };
    let possible = if inclusion { index < new } else { old <= new };
    assert_eq!(right.is_ok(), possible, "{old} {new} {index}");
    let Ok(right) = right else { return };
    let mut proof = right.clone();
    let mut leaf = leaves.get(index as usize).copied().unwrap_or(Digest([0; 32]));
    let mut end = root(new);
    for change in changes.chunks_exact(3) {
        let (place, bit) = (usize::from(change[1]), change[2].max(1));
        match change[0] % 6 {
            0 if !proof.is_empty() => {
                let at = place % proof.len();
                proof[at].0[place % 32] ^= bit;
            }
            1 => proof.push(leaves.get(place).copied().unwrap_or(Digest([change[2]; 32]))),
            2 => drop(proof.pop()),
            3 if proof.len() > 1 => {
                let at = place % (proof.len() - 1);
                proof.swap(at, at + 1);
            }
            4 => leaf.0[place % 32] ^= bit,
            5 => end.0[place % 32] ^= bit,
            _ => {}
        }
    }
    if inclusion {
        // A tree of one leaf has that leaf as its root, whichever it is.
        let is_honest = leaf == leaves[index as usize] && end == root(new);
        let is_right = proof == right && (is_honest || new == 1 && leaf == end);
        assert_eq!(verify_inclusion(index, new, &leaf, &proof, &end).is_ok(), is_right);
    } else {
        let begin = root(old);
        let is_right = proof == right && end == root(new) && (old > 0 || new == 0);
        assert_eq!(verify_consistency(old, new, &proof, &begin, &end).is_ok(), is_right);
    }
}

/// The root by its definition: the left part is the largest power of two below the size.
fn slow_root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest(ring_digest(b"")),
        [leaf] => *leaf,
        _ => {
            let mut left = 1;
            while left * 2 < leaves.len() {
                left *= 2;
            }
            let (left, right) = (slow_root(&leaves[..left]), slow_root(&leaves[left..]));
            Digest(ring_digest(&[&[1], &left.0[..], &right.0[..]].concat()))
        }
    }
}

/// What [`body`] relies on.
#[cfg(test)]
#[test]
fn base64url_is_that_of_the_product() {
    for length in 0..40u8 {
        let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
        assert_eq!(slow_base64url(&bytes), dendrer_object::digest::encode_base64url(&bytes));
    }
}
