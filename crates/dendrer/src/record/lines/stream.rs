//! Lines as they arrive: those that one read of the input brought come together.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use dendrer_object::json;
use dendrer_store::group::LINES_MAX;

/// How much of the input is read at once, in bytes.
const READ: usize = 1 << 16;

/// Reads of the input that wait to be judged, at most. More of them wait in the pipe.
const READS_MAX: usize = 16;

/// A line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentLine {
    /// Its number, from 1. Blank lines count.
    pub number: u64,
    /// Its bytes without the newline.
    pub text: Vec<u8>,
}

/// Lines of an input, in their order.
#[derive(Debug)]
pub struct LineStream {
    reads: Receiver<io::Result<Vec<IntentLine>>>,
    /// Lines that have arrived.
    arrived: VecDeque<IntentLine>,
}

impl LineStream {
    /// Waits for a line; `None` at the end of the input.
    pub fn next(&mut self) -> Option<io::Result<IntentLine>> {
        self.take(|reads| reads.recv().ok()).transpose()
    }

    /// A line that has arrived. Fails if none has, or at the end of the input.
    pub fn try_next(&mut self) -> Result<io::Result<IntentLine>, TryRecvError> {
        let mut empty = TryRecvError::Disconnected;
        let line = self.take(|reads| reads.try_recv().map_err(|error| empty = error).ok()).transpose();
        line.ok_or(empty)
    }

    /// Waits for the first line that is not blank; `None` if the input ends before.
    pub fn first(&mut self) -> Option<io::Result<IntentLine>> {
        loop {
            match self.next()? {
                Ok(line) if line.text.iter().all(u8::is_ascii_whitespace) => {}
                line => return Some(line),
            }
        }
    }

    fn take(
        &mut self,
        read: impl FnOnce(&Receiver<io::Result<Vec<IntentLine>>>) -> Option<io::Result<Vec<IntentLine>>>,
    ) -> io::Result<Option<IntentLine>> {
        if self.arrived.is_empty()
            && let Some(lines) = read(&self.reads)
        {
            self.arrived.extend(lines?);
        }
        Ok(self.arrived.pop_front())
    }
}

/// Reads lines in a thread of its own, so that the disk can work while the next line is awaited. Fails if the system starts no
/// thread.
pub fn read(input: impl Read + Send + 'static) -> io::Result<LineStream> {
    let (send, reads) = sync_channel(READS_MAX);
    std::thread::Builder::new().spawn(move || read_all(BufReader::with_capacity(READ, input), &send))?;
    Ok(LineStream { reads, arrived: VecDeque::new() })
}

/// Sends lines until the input ends or fails, or the receiver is gone.
fn read_all(mut input: BufReader<impl Read>, send: &SyncSender<io::Result<Vec<IntentLine>>>) {
    let mut lines = Vec::new();
    for number in 1.. {
        let mut text = Vec::new();
        // A line without an end must not fill the memory before it is refused.
        let limit = json::DOCUMENT_SIZE_MAX as u64 + 2;
        let error = match Read::take(&mut input, limit).read_until(b'\n', &mut text) {
            Ok(0) => return,
            Ok(_) => {
                text.pop_if(|last| *last == b'\n');
                lines.push(IntentLine { number, text });
                None
            }
            Err(error) => Some(error),
        };
        // A line is never held back for one that is not whole yet.
        let is_full = lines.len() >= LINES_MAX || !input.buffer().contains(&b'\n');
        if (is_full || error.is_some())
            && !lines.is_empty()
            && send.send(Ok(std::mem::take(&mut lines))).is_err()
        {
            return;
        }
        if let Some(error) = error {
            // Ignored: the receiver is gone.
            let _ = send.send(Err(error));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that returns one of its parts at each read.
    struct Parts(VecDeque<io::Result<&'static str>>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(part) = self.0.pop_front() else { return Ok(0) };
            let part = part?;
            buffer[..part.len()].copy_from_slice(part.as_bytes());
            Ok(part.len())
        }
    }

    fn batches(parts: Vec<io::Result<&'static str>>) -> Vec<Result<Vec<String>, String>> {
        let stream = read(Parts(parts.into())).expect("a thread begins");
        let text = |line: IntentLine| format!("{} {}", line.number, String::from_utf8_lossy(&line.text));
        let each = stream.reads.into_iter().map(|lines| match lines {
            Ok(lines) => Ok(lines.into_iter().map(text).collect()),
            Err(error) => Err(error.to_string()),
        });
        each.collect()
    }

    #[test]
    fn lines_of_one_read_come_together_and_wait_for_no_other() {
        let found = batches(vec![Ok("a\nb\nc"), Ok("d\n\ne\n"), Ok("f"), Err(io::Error::other("gone"))]);
        let of = |lines: &[&str]| Ok(lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(found, [of(&["1 a", "2 b"]), of(&["3 cd", "4 ", "5 e"]), Err("gone".to_owned())]);
        assert_eq!(batches(vec![Ok("x")]), [of(&["1 x"])], "a last line needs no end");
    }

    #[test]
    fn many_lines_come_in_groups_and_in_order() {
        let text = "l\n".repeat(1000);
        let mut stream = read(io::Cursor::new(text.into_bytes())).expect("a thread begins");
        let numbers = std::iter::from_fn(|| stream.next()).map(|line| line.expect("a line").number);
        assert!(numbers.eq(1..=1000));
        assert_eq!(stream.try_next().map(drop).unwrap_err(), TryRecvError::Disconnected);
    }
}
