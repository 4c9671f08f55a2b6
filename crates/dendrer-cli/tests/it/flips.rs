//! Bits flipped on disk, seen through the program.

use crate::support::Place;

/// How many bits are flipped, one at a time.
const FLIPS: u64 = 1000;

#[test]
fn a_flipped_bit_is_not_called_intact() {
    let place = Place::with_store();
    let lines = concat!(
        r#"{"type":"observation.add","agent":"a","confidence":0.5,"delta":[{"set":"/n","value":1}]}"#,
        "\n",
        r#"{"type":"kernel.anomaly","agent":"a"}"#,
        "\n",
        r#"{"type":"action.request","agent":"b","action":{"tool":"t","params":{"q":"x"}}}"#,
        "\n",
    );
    assert_eq!(place.run_with(&["commit", "--run", "r"], lines.as_bytes()).code, 5);
    // What the user's own pin would find is not the store's merit.
    std::fs::remove_dir_all(place.config().join("heads")).unwrap();
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    let events = place.ok(&["export", "r", "--format", "jsonl"]);
    let files = ["segments/00000000.seg", "store.json", "checkpoint"]
        .map(|name| place.path().join(".dendrer").join(name));
    let contents = files.each_ref().map(|file| std::fs::read(file).unwrap());
    let total: u64 = contents.iter().map(|bytes| bytes.len() as u64 * 8).sum();
    let mut state = 7u64;
    let mut unnoticed = Vec::new();
    for _ in 0..FLIPS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bit = (state >> 11) % total;
        let at = contents.iter().position(|bytes| {
            let here = bytes.len() as u64 * 8;
            let found = bit < here;
            bit -= if found { 0 } else { here };
            found
        });
        let at = at.unwrap();
        let mut edited = contents[at].clone();
        edited[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(&files[at], &edited).unwrap();
        let verified = place.run(&["verify", "--all"]);
        if verified.code == 0 {
            // Nothing of the meaning may have changed.
            assert_eq!(
                place.ok(&["export", "r", "--format", "jsonl"]),
                events,
                "bit {bit} of {}",
                files[at].display()
            );
            unnoticed.push((bit, files[at].clone()));
        } else {
            assert!(
                [4, 6, 8].contains(&verified.code) || verified.code == 3,
                "{}: {}",
                verified.code,
                verified.stderr
            );
        }
        std::fs::write(&files[at], &contents[at]).unwrap();
    }
    assert_eq!(unnoticed, [], "every bit of these files means something");
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}
