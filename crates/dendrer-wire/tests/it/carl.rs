//! Chains of `carl-core` 0.2.0 through a run: what comes in goes out byte for byte under `carl/1`.

use std::io::{Cursor, Write as _};
use std::process::Command;

use dendrer::Trace;
use dendrer::kernel::step::Start;
use dendrer::recorder::Fixed;
use dendrer::redact::RedactionProfile;
use dendrer_chain::RowValue;
use dendrer_testkit::memory;
use dendrer_wire::foreign::WrittenPart;
use dendrer_wire::import::{self, ImportOptions, OnGap};

use crate::of;

/// The same random chains that rows are compared with.
const RANDOM: &str = include_str!("../../../dendrer-chain/tests/random_chains.py");

#[test]
fn ten_thousand_chains_go_through_a_store_byte_for_byte() {
    let python = std::env::var("DENDRER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ran = Command::new(&python).args(["-c", RANDOM]).output();
    let Some(printed) = ran.ok().filter(|ran| ran.status.success()) else {
        assert!(std::env::var_os("DENDRER_PYTHON").is_none(), "{python} has no package carl-core");
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: {python} has no package carl-core; no chain is imported");
        return;
    };
    let printed = String::from_utf8(printed.stdout).unwrap();
    let redactor = dendrer::repo::redactor(RedactionProfile::Carl1, None, None).unwrap();
    let store = memory(1);
    let mut chains = 0;
    for line in printed.lines() {
        let said = RowValue::parse(line).unwrap();
        let text = said.get("text").and_then(RowValue::as_str).unwrap().to_owned() + "\n";
        let options = ImportOptions { on_gap: OnGap::Stop, ..of("carl") };
        let name = format!("c{chains}").parse().unwrap();
        let mut source = Cursor::new(text.as_bytes());
        let plan = import::plan(&mut source, options, Start::new(name)).unwrap();
        let plan = plan.redacted(redactor.clone(), &mut source).unwrap();
        assert_eq!(plan.rows(), Some((Vec::new(), Vec::new())), "{text}");
        let surroundings = Box::new(Fixed::new("import", 0, 1));
        import::record(&store, &mut source, &plan, surroundings, &mut |_| ()).unwrap();
        let trace = Trace::open(&store, &plan.start.run).unwrap();
        let mut out = String::new();
        let write = &mut |line: WrittenPart<'_>| {
            let WrittenPart::Text(line) = line else { panic!("a row is text") };
            out.push_str(line);
            Ok::<(), ()>(())
        };
        plan.format().write(&trace, false, write).unwrap().unwrap();
        assert_eq!(out, text);
        chains += 1;
    }
    assert_eq!(chains, 10_000);
}
