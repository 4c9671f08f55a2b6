//! Processor time of redaction: a MiB of typical outputs, the same of each hostile kind, and sixteen times as much.
//!
//! `cargo bench -p dendrer --bench redact`. Prints; never judges.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::hint::black_box;
use std::time::Duration;

use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer_testkit::tool_outputs::{HOSTILE_KINDS, typical_text};
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
fn time(redactor: &Redactor, text: &str, rounds: usize) -> f64 {
    let once = |_| {
        let before = cpu();
        black_box(redactor.text(black_box(text)));
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
    let small = time(&redactor, &typical_text(1, MIB), 5);
    let large = time(&redactor, &typical_text(1, 16 * MIB), 2);
    print(("typical", small, large), small);
    let (mut worst, mut steepest) = (0.0_f64, 0.0_f64);
    for kind in HOSTILE_KINDS {
        let (one, sixteen) = (time(&redactor, &kind.text(MIB), 3), time(&redactor, &kind.text(16 * MIB), 1));
        print((kind.name, one, sixteen), small);
        worst = worst.max(one / small);
        steepest = steepest.max(sixteen / one);
    }
    println!("worst of typical {worst:.1}, steepest 16 MiB to 1 MiB {steepest:.1}");
}

fn print((name, one, sixteen): (&str, f64, f64), typical: f64) {
    println!("{name:24} {one:9.1} {sixteen:9.1} {:11.2} {:9.1}", one / typical, sixteen / one);
}
