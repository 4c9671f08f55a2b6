use dendrer::care::export::{ExportError, WithholdError};
use dendrer_object::Code;
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::export::ExportAnswer;
use dendrer_view::quote;

use super::{check, error_text, path, text};

#[test]
fn a_file_that_was_exported_can_be_verified() {
    let runs = ["risky".to_owned()];
    let answer = ExportAnswer { path: "run.dnd", format: "bundle", bytes: 12_345, runs: &runs };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        (stderr) wrote 12345 bytes to run.dnd
        (stderr) help: dendrer verify run.dnd"#,
    );
    let lines = ExportAnswer { format: "jsonl", ..answer };
    check(
        &text(&lines, &Page::WIDE),
        "
        (stderr) wrote 12345 bytes to run.dnd",
    );
    check(
        &quote::json(&lines.document()),
        r#"
        {"bytes":12345,"format":"jsonl","path":"run.dnd","runs":["risky"],"schema":"dendrer.export/1"}"#,
    );
}

#[test]
fn a_refused_export_says_that_nothing_was_written() {
    check(
        &error_text(ExportError::LastNotSigned(1)),
        r#"
        error[E0804]: the last 1 record is not signed, and the key of the log is not here
        note: nothing was written; the signing key is due, and no writer's secret: name it with --key FILE
              see: dendrer explain E0804"#,
    );
    let around = Some(path("/result"));
    check(
        &error_text(ExportError::from(WithholdError::NothingThere { place: path("/result/output"), around })),
        r#"
        error[E0106]: no record has a field at or below /result/output
        note: a field is withheld as a whole: --withhold /result takes it
        note: nothing was written"#,
    );
    check(
        &error_text(ExportError::Unsound { code: Code::E0303, message: "the root differs".into() }),
        r#"
        error[E0303]: the bundle would be TAMPERED: the root differs
        note: nothing was written; what is left of the run as lines, which prove nothing: --format jsonl
        help: dendrer verify --all
              see: dendrer explain E0303"#,
    );
}
