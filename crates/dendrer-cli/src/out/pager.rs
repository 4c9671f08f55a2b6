//! The pager: for an answer on a terminal that is longer than the screen, and for nothing else.
//!
//! Lines are held back until there are more than fit; only then a pager starts. Of `$PAGER` only an empty text and `cat` count,
//! which ask for none: it is often set to something that shows colours as rubbish. The lines were escaped before, so `less -R` is
//! safe.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

/// An answer on its way to a terminal.
pub(crate) struct Pager {
    held: Vec<u8>,
    rows: usize,
    /// The characters of the line that is being written.
    column: usize,
    height: usize,
    width: usize,
    to: To,
}

enum To {
    /// Everything fits so far.
    Held,
    /// Another program shows it.
    Program(Child),
    /// Nobody else does: screen by screen, until the reader has had enough.
    Screens { left: usize, done: bool },
}

impl Pager {
    /// Begins with an empty screen of this size.
    pub(crate) fn new(width: usize, height: usize) -> Pager {
        Pager { held: Vec::new(), rows: 0, column: 0, height, width: width.max(1), to: To::Held }
    }

    /// Shows what is left and waits for the reader.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Held => {
                io::stdout().write_all(&std::mem::take(&mut self.held))?;
                io::stdout().flush()
            }
            To::Program(child) => {
                drop(child.stdin.take());
                child.wait().map(|_| ())
            }
            To::Screens { .. } => io::stdout().flush(),
        }
    }

    /// Counts rows as a terminal does: a long line takes several.
    fn count(&mut self, bytes: &[u8]) {
        for c in String::from_utf8_lossy(bytes).chars() {
            if c == '\n' {
                self.rows += 1;
                self.column = 0;
            } else {
                self.column += 1;
                if self.column > self.width {
                    self.rows += 1;
                    self.column = 1;
                }
            }
        }
    }

    fn start(&mut self) -> io::Result<()> {
        self.to = match program() {
            Some(child) => To::Program(child),
            None => To::Screens { left: self.height.saturating_sub(1), done: false },
        };
        let held = std::mem::take(&mut self.held);
        self.show(&held)
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.to {
            To::Held => {
                self.held.extend_from_slice(bytes);
                Ok(())
            }
            To::Program(child) => match child.stdin.as_mut() {
                Some(stdin) => stdin.write_all(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            To::Screens { left, done } => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    if *done {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                    io::stdout().write_all(line)?;
                    if line.ends_with(b"\n") {
                        *left = left.saturating_sub(1);
                    }
                    if *left == 0 {
                        *done = !more()?;
                        *left = self.height.saturating_sub(1).max(1);
                    }
                }
                Ok(())
            }
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.to, To::Held) {
            self.count(bytes);
            self.held.extend_from_slice(bytes);
            if self.rows >= self.height {
                self.start()?;
            }
        } else {
            self.show(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the environment asks for no pager: `DENDRER_PAGER`, or `PAGER` where that is not set, is empty or `cat`.
pub(crate) fn refused() -> bool {
    let chosen = std::env::var("DENDRER_PAGER").or_else(|_| std::env::var("PAGER"));
    chosen.is_ok_and(|pager| matches!(pager.trim(), "" | "cat"))
}

/// Starts `$DENDRER_PAGER`, or else `less`.
fn program() -> Option<Child> {
    let chosen = std::env::var("DENDRER_PAGER").ok();
    let words: Vec<&str> = chosen.as_deref().unwrap_or("less").split_whitespace().collect();
    let (name, args) = words.split_first()?;
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::piped());
    if chosen.is_none() {
        // Quit if it fits on one screen after all, keep colours, do not clear the screen at the end. An interrupt
        // ends this program, so it must end the pager as well: else two of them would read the keyboard.
        command.env("LESS", "FRXK").env("LESSCHARSET", "utf-8");
    }
    command.spawn().ok()
}

/// Asks whether to go on. Without a keyboard there is nobody to ask.
fn more() -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(true);
    }
    io::stdout().flush()?;
    write!(io::stderr(), "-- more: Enter; stop: q and Enter --")?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer)?;
    Ok(read > 0 && !answer.trim_start().starts_with('q'))
}
