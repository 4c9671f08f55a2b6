//! How fast a chat is imported, beside reading the same bytes as JSON and nothing more.
//! `cargo bench -p dendrer-wire --bench import` prints; never judges.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

use dendrer::kernel::step::Start;
use dendrer_object::json;
use dendrer_wire::import::{self, Choice, Kind, OnGap, Options};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MESSAGES: usize = 40_000;

fn main() {
    let chat = chat();
    let megabytes = chat.len() as f64 / 1e6;
    println!(
        "reading a chat of {MESSAGES} messages, {megabytes:.0} MB, against the JSON parser alone (limit: 2.0)"
    );
    let mut ratios: Vec<(f64, f64, f64)> = (0..5)
        .map(|_| {
            let start = Instant::now();
            black_box(json::parse_door(&chat).expect("JSON"));
            let alone = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let begin = Start::new("chat".parse().expect("a name"));
            let plan = import::plan(&mut Cursor::new(&chat), options(), begin).expect("a chat");
            assert_eq!(plan.tally.ticks as usize, MESSAGES);
            let read = start.elapsed().as_secs_f64();
            (read / alone, read, alone)
        })
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, read, alone) = ratios[2];
    println!(
        "  ratio {ratio:.2}   ({:.0} MB/s, the parser alone {:.0} MB/s)",
        megabytes / read,
        megabytes / alone
    );
}

fn options() -> Options {
    Options { kind: Kind::Chat, choice: Choice::default(), on_gap: OnGap::Mark, name: None }
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
