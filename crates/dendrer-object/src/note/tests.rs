use proptest::prelude::*;

use super::*;
use crate::merkle::{leaf_hash, node_hash};

// Made with Python's `cryptography` from seed 0, 1, 2, ... 31 over a tree of the entries a, b and c.
const NAME: &str = "example.com/runs";
const VERIFIER: &str = "example.com/runs+c5dd65dd+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
const SIGNING: &str = "PRIVATE+KEY+example.com/runs+c5dd65dd+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const NOTE: &str = "example.com/runs\n\
    3\n\
    NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=\n\
    \n\
    \u{2014} example.com/runs xd1l3Vv7aFRV3svQrJs4KytnxzxGMy3qX55zK6Sg4ZA/IX7T2h239IJoRoscxZWmZO3DweiR+Vo5Ali8/qUhYWB6ZgU=\n";

// The key and the note that the tests of Go's golang.org/x/mod/sumdb/note use.
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PETER_SIGNING: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PETER_TEXT: &str = "If you think cryptography is the answer to your problem,\n\
    then you don't know what your problem is.\n";
const PETER_SIGNATURE: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const ENOCH_SIGNATURE: &str = "\u{2014} EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

fn verifier(text: &str) -> VerifierKey {
    text.parse().unwrap()
}

fn signing_key(name: &str, seed: u8) -> SigningKey {
    SigningKey::from_seed(name, [seed; 32]).unwrap()
}

fn parse(text: &str) -> Result<SignedNote, NoteError> {
    SignedNote::parse(text.as_bytes())
}

/// Reads and verifies a checkpoint as an auditor would who knows nothing but the log's name and key.
fn open(bytes: &[u8]) -> Result<Checkpoint, NoteError> {
    Checkpoint::open(&SignedNote::parse(bytes)?, NAME, &verifier(VERIFIER))
}

#[test]
fn a_checkpoint_made_elsewhere_is_made_alike_here() {
    let key = SigningKey::from_seed(NAME, std::array::from_fn(|i| i as u8)).unwrap();
    assert_eq!(key.verifier_key().to_string(), VERIFIER);
    assert_eq!(key.secret_text(), SIGNING);
    let root = node_hash(&node_hash(&leaf_hash(b"a"), &leaf_hash(b"b")), &leaf_hash(b"c"));
    let checkpoint = Checkpoint::new(NAME, 3, root).unwrap();
    assert_eq!(checkpoint.sign(&key).unwrap().to_string(), NOTE);
    assert_eq!(open(NOTE.as_bytes()), Ok(checkpoint));
}

#[test]
fn notes_of_go_are_read_and_made_alike() {
    let text = format!("{PETER_TEXT}\n{PETER_SIGNATURE}{ENOCH_SIGNATURE}");
    let note = parse(&text).unwrap();
    assert_eq!((note.text(), note.to_string()), (PETER_TEXT, text));
    let (peter, enoch) = (verifier(PETER), verifier(ENOCH));
    assert_eq!(note.verify(&[enoch.clone(), peter.clone()]), Ok(vec![&peter, &enoch]));
    assert_eq!(note.verify(std::slice::from_ref(&enoch)), Ok(vec![&enoch]));
    let key = SigningKey::from_secret_text(PETER_SIGNING).unwrap();
    let signed = SignedNote::sign(PETER_TEXT, &key).unwrap();
    assert_eq!(signed.to_string(), format!("{PETER_TEXT}\n{PETER_SIGNATURE}"));
}

#[test]
fn the_example_of_the_specification_is_read() {
    let text = "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\n\
        ed \u{e8} subito sera.\n\n\
        \u{2014} quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n";
    let note = parse(text).unwrap();
    assert_eq!(note.to_string(), text);
    assert!(note.text().ends_with("sole:\n\ned \u{e8} subito sera.\n"));
    assert_eq!(note.signatures()[0].name, "quasimodo.example/salvatore");
    assert_eq!(note.signatures()[0].key_id.to_string(), "367ba04b");
}

#[test]
fn every_change_of_one_byte_of_a_checkpoint_is_refused() {
    let note = NOTE.as_bytes();
    let mut tried = 0;
    for at in 0..note.len() {
        for byte in 0..=255u8 {
            let mut changed = note.to_vec();
            changed[at] = byte;
            assert_eq!(open(&changed).is_ok(), byte == note[at], "byte {at} set to {byte}");
            tried += 1;
        }
        let mut cut = note.to_vec();
        cut.remove(at);
        assert!(open(&cut).is_err(), "byte {at} removed");
        assert!(open(&note[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(tried, note.len() * 256);
    for at in 0..=note.len() {
        for byte in [0, b'\n', b' ', b'+', b'=', b'A', b'0', 0xe2] {
            let mut longer = note.to_vec();
            longer.insert(at, byte);
            assert!(open(&longer).is_err(), "{byte} inserted at {at}");
        }
    }
}

#[test]
fn another_key_of_the_same_name_is_not_known() {
    let note = Checkpoint::new("log", 1, leaf_hash(b"")).unwrap().sign(&signing_key("log", 1)).unwrap();
    let other = signing_key("log", 2);
    assert_ne!(other.verifier_key().id(), note.signatures()[0].key_id);
    assert_eq!(note.verify(&[other.verifier_key().clone()]), Err(NoteError::NoKnownSignature));
    assert_eq!(note.verify(&[]), Err(NoteError::NoKnownSignature));
    // The same public key under another name is another key too.
    let renamed = signing_key("log2", 1);
    assert_eq!(note.verify(&[renamed.verifier_key().clone()]), Err(NoteError::NoKnownSignature));
}

#[test]
fn a_signature_that_names_a_key_and_is_not_by_it_is_wrong() {
    let (ours, theirs) = (signing_key("log", 1), signing_key("log", 2));
    let text = "log\n1\nroot\n";
    let mut forged = SignedNote::sign(text, &theirs).unwrap().signatures()[0].clone();
    forged.key_id = ours.verifier_key().id();
    let mut note = SignedNote::sign(text, &signing_key("other", 3)).unwrap();
    note.add(forged).unwrap();
    let known = [ours.verifier_key().clone(), signing_key("other", 3).verifier_key().clone()];
    let wrong = NoteError::WrongSignature { name: "log".to_owned(), id: known[0].id() };
    assert_eq!(note.verify(&known), Err(wrong));
    // Who does not know the key cannot tell, and relies on the one that is known.
    assert_eq!(note.verify(&known[1..]), Ok(vec![&known[1]]));
}

#[test]
fn a_signature_moved_to_another_checkpoint_is_wrong() {
    let key = signing_key("log", 1);
    let signed = Checkpoint::new("log", 1, leaf_hash(b"")).unwrap().sign(&key).unwrap();
    for other in [
        Checkpoint::new("log", 2, leaf_hash(b"")).unwrap(),
        Checkpoint::new("log", 1, leaf_hash(b"x")).unwrap(),
        Checkpoint::new("log2", 1, leaf_hash(b"")).unwrap(),
    ] {
        let moved = parse(&format!("{other}\n{}\n", signed.signatures()[0])).unwrap();
        let opened = Checkpoint::open(&moved, other.origin(), key.verifier_key());
        assert!(matches!(opened, Err(NoteError::WrongSignature { .. })), "{opened:?}");
    }
}

#[test]
fn a_checkpoint_of_another_log_by_the_same_key_is_refused() {
    let key = signing_key("log", 1);
    let note = Checkpoint::new("log/a", 1, leaf_hash(b"")).unwrap().sign(&key).unwrap();
    let differs = NoteError::OriginDiffers { expected: "log/b".to_owned(), found: "log/a".to_owned() };
    assert_eq!(Checkpoint::open(&note, "log/b", key.verifier_key()), Err(differs));
    assert!(Checkpoint::open(&note, "log/a", key.verifier_key()).is_ok());
}

#[test]
fn a_witness_alone_does_not_open_a_checkpoint() {
    let (log, witness) = (signing_key("log", 1), signing_key("witness", 2));
    let checkpoint = Checkpoint::new("log", 1, leaf_hash(b"")).unwrap();
    let mut note = checkpoint.sign(&witness).unwrap();
    let opened = Checkpoint::open(&note, "log", log.verifier_key());
    assert_eq!(opened, Err(NoteError::NoKnownSignature));
    note.add_signature(&log).unwrap();
    assert_eq!(Checkpoint::open(&note, "log", log.verifier_key()), Ok(checkpoint));
    let known = [log.verifier_key().clone(), witness.verifier_key().clone()];
    assert_eq!(note.verify(&known), Ok(vec![&known[1], &known[0]]));
}

#[test]
fn known_keys_of_one_name_and_id_are_ambiguous() {
    let key = signing_key("log", 1).verifier_key().clone();
    let mut twin = signing_key("log", 2).verifier_key().clone();
    // A collision of 32 bits is cheap for who wants one; here it is made by hand.
    twin.id = key.id;
    let note = SignedNote::sign("text\n", &signing_key("log", 1)).unwrap();
    let ambiguous = NoteError::AmbiguousKey { name: "log".to_owned(), id: key.id };
    assert_eq!(note.verify(&[key.clone(), twin]), Err(ambiguous));
    assert_eq!(note.verify(&[key.clone(), key.clone()]), Ok(vec![&key]));
}

#[test]
fn keys_have_one_spelling() {
    for text in [VERIFIER, PETER, ENOCH] {
        assert_eq!(verifier(text).to_string(), text);
        assert_eq!(VerifierKey::new(verifier(text).name(), *verifier(text).public_key()), Ok(verifier(text)));
    }
    for (text, read) in [
        (VERIFIER, (|text| text.parse::<VerifierKey>().is_ok()) as fn(&str) -> bool),
        (SIGNING, |text| SigningKey::from_secret_text(text).is_ok()),
    ] {
        assert!(read(text));
        for at in 0..text.len() {
            assert!(!read(&text[..at]) && !read(&text[at + 1..]));
            for byte in 0..128u8 {
                let mut changed = text.as_bytes().to_vec();
                changed[at] = byte;
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(read(&changed), changed == text, "{changed}");
            }
        }
        for surplus in [" ", "\n", "=", "A", "+"] {
            assert!(!read(&format!("{text}{surplus}")) && !read(&format!("{surplus}{text}")));
        }
        assert!(!read(&text.replace("c5dd65dd", "C5DD65DD")));
    }
}

#[test]
fn keys_are_refused_for_what_is_wrong_with_them() {
    let check = |text: &str, expected: NoteError| assert_eq!(text.parse::<VerifierKey>(), Err(expected));
    check("", NoteError::VerifierKey);
    check("log", NoteError::VerifierKey);
    check("log+00000000", NoteError::VerifierKey);
    check("log+00000000+", NoteError::VerifierKey);
    check("log+00000000+AQ==", NoteError::VerifierKey);
    check("log+00000000+AB==", NoteError::VerifierKey);
    check("log+00000000+BAAA", NoteError::KeyType { found: 4 });
    check(SIGNING, NoteError::VerifierKey);
    check(&VERIFIER.replacen("example.com", "", 1).replacen("/runs", "", 1), NoteError::KeyName);
    let [expected, found] = [KeyId([0xc5, 0xdd, 0x65, 0xdd]), KeyId([0; 4])];
    let differs = NoteError::KeyIdDiffers { name: NAME.to_owned(), expected, found };
    check(&VERIFIER.replace("c5dd65dd", "00000000"), differs);
    for name in ["", "a b", "a+b", "a\u{2003}b", "a\u{a0}", "a\nb", "a\u{85}", "\u{1}"] {
        assert_eq!(VerifierKey::new(name, [0; 32]), Err(NoteError::KeyName), "{name:?}");
        assert!(SigningKey::from_seed(name, [0; 32]).is_err(), "{name:?}");
    }
    assert!(VerifierKey::new("na\u{ef}ve/\u{1f916}", [0; 32]).is_ok());
}

#[test]
fn a_signing_key_does_not_show_its_secret() {
    let key = SigningKey::from_secret_text(SIGNING).unwrap();
    assert_eq!(format!("{key:?} {key:#?}"), ["SigningKey(example.com/runs c5dd65dd)"; 2].join(" "));
    let errors = ["PRIVATE+KEY+x", &SIGNING.replace("c5dd", "0000"), &SIGNING.replace("+AQAB", "+AgAB")];
    for text in errors {
        let error = SigningKey::from_secret_text(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("AgMEBQYH"), "{error}");
    }
}

#[test]
fn malformed_notes_are_refused() {
    use NoteError::*;
    let text = PETER_TEXT;
    let check = |note: &str, expected: NoteError| assert_eq!(parse(note), Err(expected), "{note:?}");
    check("", Unsigned);
    check("\n\n", Unsigned);
    check(text, Unsigned);
    check(&format!("{text}\n"), Unsigned);
    check(&format!("{text}{PETER_SIGNATURE}"), Unsigned);
    check(&format!("\n{PETER_SIGNATURE}"), Unsigned);
    check(&format!("{text}\n{PETER_SIGNATURE}\n"), Unsigned);
    check(&format!("{text}\n{}", PETER_SIGNATURE.trim_end()), SignatureLine { line: 1 });
    check(&format!("{text}\n{PETER_SIGNATURE}more\n"), SignatureLine { line: 2 });
    check(&format!("\u{1}{text}\n{PETER_SIGNATURE}"), Characters);
    check(&format!("{text}\n{PETER_SIGNATURE}").replace('\n', "\r\n"), Characters);
    check(&format!("a\tb\n\n{PETER_SIGNATURE}"), Characters);
    let (name, id) = ("PeterNeumann".to_owned(), KeyId([0xc7, 0x4f, 0x20, 0xa3]));
    check(&format!("{text}\n{PETER_SIGNATURE}{PETER_SIGNATURE}"), DuplicateSignature { name, id });
    assert_eq!(SignedNote::parse(b"\xff\n\n"), Err(Characters));
    let line = |signature: &str| check(&format!("{text}\n{signature}\n"), SignatureLine { line: 1 });
    line("- PeterNeumann x08go/ZJ");
    line("\u{2014}  PeterNeumann x08go/ZJ");
    line("\u{2014}PeterNeumann x08go/ZJ");
    line("\u{2014} PeterNeumann");
    line("\u{2014} PeterNeumann ");
    line("\u{2014} Peter Neumann x08go/ZJ");
    line("\u{2014} Peter+Neumann x08go/ZJ");
    line("\u{2014}  x08go/ZJ");
    line("\u{2014} PeterNeumann x08go/ZJ ");
    line("\u{2014} PeterNeumann x08goA=="); // an id and no signature
    line("\u{2014} PeterNeumann x08go/Y"); // no padding
    line("\u{2014} PeterNeumann x08go/Z="); // trailing bits that are not zero
    line("\u{2014} PeterNeumann x08go_ZJ"); // another alphabet
    assert!(parse(&format!("{text}\n\u{2014} PeterNeumann x08go/Y=\n")).is_ok());
    // Empty lines, an empty text and characters above the ASCII controls are allowed.
    for odd in ["\n", "\n\n\n", "a\n\n", "\u{7f}\u{85}\u{202e}\n"] {
        let note = parse(&format!("{odd}\n{PETER_SIGNATURE}")).unwrap();
        assert_eq!(note.text(), odd);
    }
}

#[test]
fn notes_have_limits() {
    let signature = |at: usize| Signature { name: format!("key{at}"), key_id: KeyId([1; 4]), bytes: vec![1] };
    let mut note = SignedNote::sign("text\n", &signing_key("log", 1)).unwrap();
    (1..SIGNATURES_MAX).for_each(|at| note.add(signature(at)).unwrap());
    assert_eq!(parse(&note.to_string()), Ok(note.clone()));
    assert_eq!(note.add(signature(100)), Err(NoteError::TooManySignatures));
    assert_eq!(parse(&format!("{note}{}\n", signature(100))), Err(NoteError::TooManySignatures));

    let short = SignedNote::sign("\n", &signing_key("log", 1)).unwrap().to_string().len();
    let text = |length: usize| format!("{}\n", "x".repeat(length - 1));
    let longest = SignedNote::sign(&text(NOTE_BYTES_MAX - short + 1), &signing_key("log", 1)).unwrap();
    assert_eq!(longest.to_string().len(), NOTE_BYTES_MAX);
    assert_eq!(parse(&longest.to_string()), Ok(longest));
    let too_long = NoteError::TooLong { found: NOTE_BYTES_MAX + 1 };
    let signed = SignedNote::sign(&text(NOTE_BYTES_MAX - short + 2), &signing_key("log", 1));
    assert_eq!(signed, Err(too_long.clone()));
    assert_eq!(SignedNote::parse(&vec![b'x'; NOTE_BYTES_MAX + 1]), Err(too_long));
}

#[test]
fn only_whole_texts_are_signed() {
    let key = signing_key("log", 1);
    assert_eq!(SignedNote::sign("", &key), Err(NoteError::TextEnd));
    assert_eq!(SignedNote::sign("abc", &key), Err(NoteError::TextEnd));
    assert_eq!(SignedNote::sign("a\0\n", &key), Err(NoteError::Characters));
    let mut note = SignedNote::sign("a\n", &key).unwrap();
    assert!(matches!(note.add_signature(&key), Err(NoteError::DuplicateSignature { .. })));
    let nameless = Signature { name: String::new(), key_id: KeyId([0; 4]), bytes: vec![0] };
    assert_eq!(note.add(nameless), Err(NoteError::KeyName));
    let empty = Signature { name: "x".to_owned(), key_id: KeyId([0; 4]), bytes: vec![] };
    assert_eq!(note.add(empty), Err(NoteError::SignatureLine { line: 2 }));
}

#[test]
fn checkpoint_texts_have_one_spelling() {
    use NoteError::*;
    let root = "NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=";
    let check = |text: String, expected: NoteError| {
        assert_eq!(Checkpoint::parse(&text), Err(expected), "{text:?}");
    };
    for size in ["0", "1", "20852163", "18446744073709551615"] {
        let text = format!("log\n{size}\n{root}\n");
        assert_eq!(Checkpoint::parse(&text).unwrap().to_string(), text);
    }
    for size in
        ["", "00", "01", "+1", "-1", "-0", "1 ", " 1", "1.0", "1e3", "0x1", "\u{661}", "18446744073709551616"]
    {
        check(format!("log\n{size}\n{root}\n"), Size);
    }
    for lines in ["", "\n", "log\n", "log\n1\n", "log\n1", &format!("log\n1\n{root}")] {
        check(lines.to_owned(), CheckpointLines);
    }
    check(format!("log\n1\n{root}\n\n"), CheckpointLines);
    check(format!("log\n1\n{root}\nextension\n"), CheckpointLines);
    check(format!("\n1\n{root}\n"), Origin);
    check(format!("lo\rg\n1\n{root}\n"), Origin);
    for root in [
        "".to_owned(),
        root.replace('=', ""),
        root.replace("sE=", "sF="),
        root.replace('/', "_"),
        format!("{root} "),
        STANDARD.encode([0; 31]),
        STANDARD.encode([0; 33]),
    ] {
        check(format!("log\n1\n{root}\n"), Root);
    }
    assert_eq!(Checkpoint::new("a\nb", 1, Digest([0; 32])), Err(Origin));
    assert!(Checkpoint::new("my log + \u{e9}", 1, Digest([0; 32])).is_ok());
}

fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec("[^\\x00-\\x1f]{0,12}", 1..5).prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_signed_is_read_and_verified(
        text in any_text(), name in "[a-z./\u{e9}]{1,12}", seeds: [u8; 2],
    ) {
        let keys = [signing_key(&name, seeds[0]), signing_key("witness", seeds[1])];
        let mut note = SignedNote::sign(&text, &keys[0]).unwrap();
        note.add_signature(&keys[1]).unwrap();
        let read = parse(&note.to_string()).unwrap();
        prop_assert_eq!(&read, &note);
        let known = keys.each_ref().map(|key| key.verifier_key().clone());
        prop_assert_eq!(read.verify(&known).unwrap(), vec![&known[0], &known[1]]);
        for key in &keys {
            let again = SigningKey::from_secret_text(&key.secret_text()).unwrap();
            prop_assert_eq!(again.verifier_key(), key.verifier_key());
            prop_assert_eq!(&verifier(&key.verifier_key().to_string()), key.verifier_key());
        }
    }

    #[test]
    fn checkpoints_survive_the_round_trip(
        origin in "[^\\x00-\\x1f]{1,20}", size: u64, root: [u8; 32], seed: [u8; 32],
    ) {
        let checkpoint = Checkpoint::new(&origin, size, Digest(root)).unwrap();
        prop_assert_eq!(&Checkpoint::parse(&checkpoint.to_string()).unwrap(), &checkpoint);
        let key = SigningKey::from_seed("log", seed).unwrap();
        let note = parse(&checkpoint.sign(&key).unwrap().to_string()).unwrap();
        prop_assert_eq!(Checkpoint::open(&note, &origin, key.verifier_key()), Ok(checkpoint));
    }

    #[test]
    fn whatever_is_read_is_printed_alike(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in "[a\n\u{2014} A=]{0,20}\n\n(\u{2014} [a+]{0,2} [A-D=]{0,16}\n){0,3}",
    ) {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Ok(note) = SignedNote::parse(bytes) {
                let printed = note.to_string();
                prop_assert_eq!(printed.as_bytes(), bytes);
            }
        }
        if let Ok(checkpoint) = Checkpoint::parse(&text) {
            prop_assert_eq!(checkpoint.to_string(), text);
        }
    }
}

#[test]
fn a_tag_is_that_of_rfc_2104() {
    let key = SigningKey::from_seed("k", [7; 32]).unwrap();
    let inner_key = Digest::of_parts(&[b"dendrer/mac-key/v1\n", &[7; 32]]);
    let padded = |pad: u8| -> Vec<u8> {
        let bytes = inner_key.0.iter().copied().chain([0; 32]);
        bytes.map(|byte| byte ^ pad).collect()
    };
    let expected = Digest::of_parts(&[&padded(0x5c), &Digest::of_parts(&[&padded(0x36), b"message"]).0]);
    let tag = key.tag(b"message");
    assert_eq!(tag, expected.0);
    assert!(key.has_tagged(b"message", &tag));
    assert!(!key.has_tagged(b"massage", &tag));
    assert!(!SigningKey::from_seed("k", [8; 32]).unwrap().has_tagged(b"message", &tag));
}
