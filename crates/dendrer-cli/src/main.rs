//! The `dendrer` program.

use std::process::ExitCode;

/// Recording and reading make and drop many small values; this allocator takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    ExitCode::from(dendrer_cli::program(&args))
}
