//! The picture of the README is what the program prints: the bisect of the demo at 80 columns, with its colours.
//! `DENDRER_UPDATE=1` writes it.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::demo;

const QUESTION: [&str; 4] = ["bisect", "workshop-300", "--holds", "state.total_chf <= 860"];
const COMMAND: &str = "$ dendrer bisect workshop-300 --holds 'state.total_chf <= 860'";

/// Columns of the terminal, and the size of one in the picture.
const COLUMNS: usize = 80;
const WIDE: f64 = 8.4;
const HIGH: usize = 18;
const MARGIN: usize = 14;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The class of a colour that the program writes.
fn class(code: &str) -> Option<&'static str> {
    match code {
        "0" => None,
        "1" => Some("b"),
        "2" => Some("d"),
        "31" => Some("r"),
        "32" => Some("g"),
        "33" => Some("y"),
        "38;5;208" => Some("o"),
        other => panic!("the picture knows no colour {other}"),
    }
}

/// Writes a line with escape sequences as spans.
fn spans(line: &str) -> String {
    let mut out = String::new();
    for (at, part) in line.split("\x1b[").enumerate() {
        let (code, text) = if at == 0 { ("0", part) } else { part.split_once('m').unwrap() };
        match class(code) {
            _ if text.is_empty() => {}
            None => out.push_str(&escaped(text)),
            Some(class) => write!(out, r#"<tspan class="{class}">{}</tspan>"#, escaped(text)).unwrap(),
        }
    }
    out
}

fn drawn(coloured: &str) -> String {
    let lines: Vec<String> = std::iter::once(format!("\x1b[1m{COMMAND}\x1b[0m"))
        .chain(coloured.lines().map(str::to_owned))
        .collect();
    let width = COLUMNS as f64 * WIDE + 2.0 * MARGIN as f64;
    let height = lines.len() * HIGH + 2 * MARGIN;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">
<title id="title">A bisect of 300 steps: the sum passes its limit at tick 290, by a price that came at tick 182</title>
<desc id="desc">What a terminal of {COLUMNS} columns shows after {}. Tick 290 is the first with a sum of more than 860. The largest write is 310, at tick 184; the number was first seen at tick 182, as a price in EUR.</desc>
<style>
  rect {{ fill: #ffffff; stroke: #d0d7de }}
  text {{ fill: #1f2328; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }}
  .b {{ font-weight: 600 }} .d {{ fill: #656d76 }} .g {{ fill: #116329 }} .r {{ fill: #cf222e }} .y {{ fill: #7d4e00 }} .o {{ fill: #bc4c00; font-weight: 600 }}
  @media (prefers-color-scheme: dark) {{
    rect {{ fill: #0d1117; stroke: #30363d }}
    text {{ fill: #e6edf3 }}
    .d {{ fill: #8b949e }} .g {{ fill: #7ee787 }} .r {{ fill: #ff7b72 }} .y {{ fill: #e3b341 }} .o {{ fill: #ffa657 }}
  }}
</style>
<rect x="0.5" y="0.5" width="{}" height="{}" rx="6"/>
"##,
        escaped(COMMAND.trim_start_matches("$ ")),
        width - 1.0,
        height - 1,
    );
    for (at, line) in lines.iter().enumerate() {
        let y = MARGIN + HIGH * at + 13;
        writeln!(out, r#"<text x="{MARGIN}" y="{y}" xml:space="preserve">{}</text>"#, spans(line)).unwrap();
    }
    out.push_str("</svg>\n");
    out
}

#[test]
fn the_picture_of_the_readme_is_what_the_program_prints() {
    let ran = demo().run(&[&QUESTION[..], &["--width", "80", "--color", "always"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("tick 290") && ran.stdout.contains("tick 182"));
    let drawn = drawn(&ran.stdout);
    let plain = demo().run(&[&QUESTION[..], &["--width", "80"]].concat()).stdout;
    assert!(plain.lines().all(|line| line.chars().count() <= COLUMNS));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/bisect.svg");
    if std::env::var_os("DENDRER_UPDATE").is_some() {
        std::fs::write(&file, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == drawn, "{} is not what is printed; DENDRER_UPDATE=1 writes it", file.display());
}
