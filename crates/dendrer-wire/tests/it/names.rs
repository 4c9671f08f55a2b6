//! Nothing is recognised by whose data it is.

use std::path::Path;

/// Names of published data sets, of their tools and of members of their domains, each in two pieces so that this
/// file does not hold it.
const FORBIDDEN: &[(&str, &str)] = &[
    ("tau", "-bench"),
    ("tau", "bench"),
    ("tau", "_bench"),
    ("agent", "dojo"),
    ("who", "&when"),
    ("who", "-and-when"),
    ("who", "_and_when"),
    ("magentic", ""),
    ("captain", "agent"),
    ("\"tra", "j\""),
    ("\"hist", "ory\""),
    ("reser", "vation"),
    ("air", "line"),
    ("mistake", "_"),
    ("injec", "tion_task"),
    ("user_", "task"),
    ("suite", "_name"),
    ("<infor", "mation>"),
    ("send_", "money"),
    ("orche", "strator"),
];

#[test]
fn no_name_of_a_data_set_or_its_domain_is_in_the_code() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stack = vec![here.join("src"), here.join("../dendrer-cli/src/verbs/import.rs")];
    let mut seen = 0;
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        for (front, back) in FORBIDDEN {
            let name = format!("{front}{back}");
            assert!(!text.contains(&name), "{name} in {}", path.display());
        }
    }
    assert!(seen >= 10, "the sources were read: {seen}");
}
