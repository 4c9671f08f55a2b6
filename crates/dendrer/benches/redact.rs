//! Processor time of redaction: a MiB of typical outputs, the same of each hostile kind, and sixteen times as much.
//!
//! `cargo bench -p dendrer --bench redact`. Prints; never judges.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::hint::black_box;
use std::time::Duration;

use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer_testkit::tool_outputs::{HOSTILE_KINDS, typical_texts};
use rustix::time::{ClockId, clock_gettime};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MIB: usize = 1 << 20;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Milliseconds of the best of `rounds`.
fn time(redactor: &Redactor, texts: &[String], rounds: usize) -> f64 {
    let once = |_| {
        let before = cpu();
        for text in texts {
            black_box(redactor.text(black_box(text)));
        }
        (cpu() - before).as_secs_f64() * 1000.0
    };
    (0..rounds).map(once).fold(f64::MAX, f64::min)
}

fn main() {
    let pack = PackRules::default();
    let redactor = Redactor::new(RedactionProfile::Default, &pack, &[], None).expect("no pattern of a pack");
    // The tables of the rules are built by the first text.
    redactor.find("password=none of your business");
    println!("{:24} {:>9} {:>9} {:>11} {:>9}", "text", "1 MiB ms", "16 MiB ms", "of typical", "16 to 1");
    let typical = time(&redactor, &typical_texts(1, MIB), 5);
    let typical_long = time(&redactor, &typical_texts(1, 16 * MIB), 2);
    print(("typical, one by one", typical, Some(typical_long)), typical);
    let joined = |size| [typical_texts(1, size).concat()];
    let (one, sixteen) = (time(&redactor, &joined(MIB), 3), time(&redactor, &joined(16 * MIB), 1));
    print(("typical, joined", one, Some(sixteen)), typical);
    let (mut worst, mut steepest) = ((one / typical, "joined"), (sixteen / one, "joined"));
    for kind in HOSTILE_KINDS {
        let one = time(&redactor, &[kind.text(MIB)], 3);
        // Sixteen times a quadratic text would take an hour.
        let is_quadratic = time(&redactor, &[kind.text(MIB / 4)], 3) * 8.0 < one;
        let sixteen = (!is_quadratic).then(|| time(&redactor, &[kind.text(16 * MIB)], 1));
        print((kind.name, one, sixteen), typical);
        if one / typical > worst.0 {
            worst = (one / typical, kind.name);
        }
        let growth = sixteen.map_or(f64::INFINITY, |sixteen| sixteen / one);
        if growth > steepest.0 {
            steepest = (growth, kind.name);
        }
    }
    println!(
        "worst of typical {:.1} ({}), steepest 16 MiB to 1 MiB {:.1} ({})",
        worst.0, worst.1, steepest.0, steepest.1
    );
}

fn print((name, one, sixteen): (&str, f64, Option<f64>), typical: f64) {
    let of_typical = one / typical;
    match sixteen {
        Some(sixteen) => {
            println!("{name:24} {one:9.1} {sixteen:9.1} {of_typical:11.2} {:9.1}", sixteen / one)
        }
        None => println!("{name:24} {one:9.1} {:>9} {of_typical:11.2} {:>9}", "quadratic", "-"),
    }
}
