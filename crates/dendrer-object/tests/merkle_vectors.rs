//! The published RFC 6962 proofs of transparency-dev/merkle, good and malformed.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read is a failed test")]

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dendrer_object::Digest;
use dendrer_object::merkle::{
    verify_consistency, verify_inclusion, verify_subtree_consistency, verify_subtree_inclusion,
};
use serde_json::Value;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors/rfc6962-proofs.jsonl");

/// Good cases whose roots are the placeholders `don't care 1` and `don't care 2`, which are no digests.
const PLACEHOLDER_ROOTS: [&str; 4] = [
    "consistency/additional/sizes-are-equal-one-and-proof-is-empty.json",
    "subtreeconsistency/additional/sizes-are-equal-one-and-proof-is-empty.json",
    "subtreeconsistency/additional/\
     subtree-is-empty-sizes-are-equal-one-subtree-root-valid-tree-root-random-proof-is-empty.json",
    "subtreeconsistency/additional/\
     subtree-is-empty-sizes-are-equal-zero-subtree-root-valid-tree-root-random-proof-is-empty.json",
];

/// A good case of the list above in which the tree is empty and its root is not that of the empty tree.
/// The vectors do not look at the root; we do.
const EMPTY_TREE_WITH_A_ROOT: &str = PLACEHOLDER_ROOTS[3];

#[expect(clippy::disallowed_methods, reason = "the vectors are data outside the repository")]
fn read_cases() -> Option<Vec<Value>> {
    let Ok(text) = std::fs::read_to_string(VECTORS) else {
        // Written past the test harness, which swallows what `eprintln!` writes in a test that passes.
        std::io::stderr()
            .write_all(format!("SKIPPED: no RFC 6962 vectors at {VECTORS}\n").as_bytes())
            .unwrap();
        return None;
    };
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cases.len(), 518);
    Some(cases)
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    Some(Digest(bytes.try_into().ok()?))
}

/// Runs one case; `None` if one of its digests is none, or `root` refuses one of its roots.
fn accepts(case: &Value, root: fn(&[u8]) -> Option<Digest>) -> Option<bool> {
    let number = |name: &str| case[name].as_u64().unwrap();
    let bytes = |text: &Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
    let root = |name: &str| root(&bytes(&case[name]));
    let list = case["proof"].as_array().cloned().unwrap_or_default();
    let proof: Vec<Digest> = list.iter().map(|text| digest(&bytes(text))).collect::<Option<_>>()?;
    let verified = match case["file"].as_str().unwrap().split('/').next().unwrap() {
        "inclusion" => {
            let leaf = digest(&bytes(&case["leafHash"]))?;
            verify_inclusion(number("leafIdx"), number("treeSize"), &leaf, &proof, &root("root")?)
        }
        "subtreeinclusion" => {
            let leaf = digest(&bytes(&case["leafHash"]))?;
            let subtree = number("start")..number("end");
            verify_subtree_inclusion(number("leafIdx"), subtree, &leaf, &proof, &root("root")?)
        }
        "consistency" => {
            verify_consistency(number("size1"), number("size2"), &proof, &root("root1")?, &root("root2")?)
        }
        "subtreeconsistency" => {
            let (subtree, size) = (number("start")..number("end"), number("size"));
            verify_subtree_consistency(subtree, size, &proof, &root("root1")?, &root("root2")?)
        }
        other => panic!("unknown kind {other}"),
    };
    Some(verified.is_ok())
}

#[test]
fn published_proofs_are_judged_as_published() {
    let Some(cases) = read_cases() else { return };
    let (mut accepted, mut refused, mut no_digest) = (0, 0, 0);
    for case in &cases {
        let file = case["file"].as_str().unwrap();
        let good = !case["wantErr"].as_bool().unwrap();
        let verdict = accepts(case, digest);
        match verdict {
            Some(true) => accepted += 1,
            Some(false) => refused += 1,
            None => no_digest += 1,
        }
        let expected = good && !PLACEHOLDER_ROOTS.contains(&file);
        assert_eq!(verdict.unwrap_or(false), expected, "{file}: {}", case["desc"]);
    }
    assert_eq!((accepted, refused, no_digest), (32, 345, 141));
}

/// The same with all roots made 32 bytes long, so that no placeholder is refused for its length alone.
/// The other 79 have a leaf or a proof that is none.
#[test]
fn published_proofs_are_judged_alike_when_all_roots_have_32_bytes() {
    let Some(cases) = read_cases() else { return };
    let padded = |bytes: &[u8]| {
        let mut root = [0; 32];
        let length = bytes.len().min(32);
        root[..length].copy_from_slice(&bytes[..length]);
        Some(Digest(root))
    };
    let mut no_digest = 0;
    for case in &cases {
        let file = case["file"].as_str().unwrap();
        let good = !case["wantErr"].as_bool().unwrap();
        let verdict = accepts(case, padded);
        no_digest += u32::from(verdict.is_none());
        let expected = good && file != EMPTY_TREE_WITH_A_ROOT;
        assert_eq!(verdict.unwrap_or(false), expected, "{file}: {}", case["desc"]);
    }
    assert_eq!(no_digest, 79);
}
