//! How fast a chat is imported, beside reading the same bytes as JSON and nothing more.
//! `cargo bench -p dendrer-wire --bench import` prints; never judges.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

use dendrer::kernel::step::Start;
use dendrer_object::{Digest, json};
use dendrer_wire::format;
use dendrer_wire::import::{self, Choice, ImportOptions, ImportPlan, OnGap};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MESSAGES: usize = 40_000;

/// Messages in a chat whose texts are long.
const LONG: usize = 400;

fn main() {
    let chat = chat();
    println!("reading a chat of {MESSAGES} messages against the JSON parser alone (limit: 2.0)");
    compare("one list", &chat, MESSAGES);
    compare("in an object", &[b"{\"id\":1,\"messages\":", &chat[..], b"}"].concat(), MESSAGES);
    let long = long();
    compare("long texts", &long, LONG);
    published();
}

/// The published runs beside this repository, where they are: each file is read and planned by itself.
fn published() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let mut files = Vec::new();
    let mut open = vec![root];
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.filter_map(|entry| Some(entry.ok()?.path()))),
            Err(_) if path.extension().is_some_and(|extension| extension == "json") => {
                files.extend(std::fs::read(&path).ok().filter(|text| plan(text).is_some()));
            }
            Err(_) => {}
        }
    }
    if files.is_empty() {
        return println!("  SKIPPED: no published runs beside this repository");
    }
    let bytes: usize = files.iter().map(Vec::len).sum();
    let timed = |each: &dyn Fn(&[u8])| {
        let start = Instant::now();
        (0..20).for_each(|_| files.iter().for_each(|file| each(file)));
        start.elapsed().as_secs_f64()
    };
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let alone = timed(&|file| drop(black_box(json::parse_door(file))));
            timed(&|file| drop(black_box(plan(file)))) / alone
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!(
        "  {} published runs, {:.1} MB   ratio {:.2}",
        files.len(),
        bytes as f64 / 1e6,
        ratios[ratios.len() / 2]
    );
}

fn plan(text: &[u8]) -> Option<ImportPlan> {
    let begin = Start::new("chat".parse().expect("a name"));
    import::plan(&mut Cursor::new(text), options(), begin).ok()
}

/// Prints how long reading a chat takes beside parsing it.
fn compare(name: &str, chat: &[u8], messages: usize) {
    let megabytes = chat.len() as f64 / 1e6;
    let mut ratios: Vec<(f64, f64, f64)> = (0..5)
        .map(|_| {
            let start = Instant::now();
            black_box(json::parse_door(chat).expect("JSON"));
            let alone = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let plan = plan(chat).expect("a chat");
            assert_eq!(plan.tally.ticks as usize, messages);
            let read = start.elapsed().as_secs_f64();
            (read / alone, read, alone)
        })
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, read, alone) = ratios[2];
    let start = Instant::now();
    black_box(Digest::of(chat));
    let hash = start.elapsed().as_secs_f64();
    println!(
        "  {name:<14}{megabytes:>3.0} MB   ratio {ratio:.2}   ({:.0} MB/s, the parser alone {:.0} MB/s, SHA-256 alone {:.0} MB/s)",
        megabytes / read,
        megabytes / alone,
        megabytes / hash
    );
}

fn options() -> ImportOptions {
    let (format, choice) = (format::detected(false), Choice::default());
    ImportOptions { format, map: None, choice, on_gap: OnGap::Mark, name: None, kept: Vec::new() }
}

/// A chat in which every question leads to a call, its result and an answer.
fn chat() -> Vec<u8> {
    let mut text = String::from("[");
    for n in 0..MESSAGES / 4 {
        let words = r#"some words of no meaning, \"quoted\" and long enough to be a sentence\n"#.repeat(6);
        if n > 0 {
            text.push(',');
        }
        text.push_str(&format!(
            r#"{{"role":"user","content":"{words}"}},
{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{n}","type":"function","function":{{"name":"look_up","arguments":"{{\"n\": {n}}}"}}}}]}},
{{"role":"tool","tool_call_id":"call_{n}","name":"look_up","content":"{words}"}},
{{"role":"assistant","content":"{words}"}}"#
        ));
    }
    text.push(']');
    text.into_bytes()
}

/// A chat of documents of 40 KB with a line break every 60 bytes, so that many a message lies across two buffers.
fn long() -> Vec<u8> {
    let line = "a line of a document, of no more than sixty bytes, and so on\\n";
    let message = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        format!(r#"{{"role":"{role}","content":"{}"}}"#, line.repeat(650))
    };
    format!("[{}]", (0..LONG).map(message).collect::<Vec<_>>().join(",\n")).into_bytes()
}
