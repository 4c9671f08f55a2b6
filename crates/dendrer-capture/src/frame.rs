//! Frames between a shim and the recorder: a kind, a length, and bytes.

use std::io::{self, Read, Write};

/// The longest frame, in bytes.
pub(crate) const FRAME_MAX: usize = (1 << 20) + 8;

/// The most bytes of one side in a frame.
pub(crate) const SENT_MAX: usize = 1 << 20;

/// Nanoseconds of a clock that all processes of a machine share, and that is never set.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

dendrer_object::words! {
    /// A side of a connection between a client and a server of MCP.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum McpSide {
        /// The client: the program.
        Client = "client",
        /// The server.
        Server = "server",
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The first frame of a shim: an object with the token, the command and the name of the server.
    Hello(Vec<u8>),
    /// Bytes that one side sent, and when they were copied ([`now`]): 0 where that is not needed.
    Sent(McpSide, u64, Vec<u8>),
    /// How many bytes of one side were not copied.
    LeftOut(McpSide, u64),
    /// The client sends nothing more.
    ClientEnd,
    /// The end of the server: its exit code, or the signal that ended it.
    Ended(McpEnd),
    /// The command is that of a recorded server, which is served.
    Known,
    /// The command is on no record.
    Unknown,
    /// The recorder asks for [`Frame::Synced`] after all that was copied so far.
    Sync(u64),
    /// All frames that were copied before the question of this number came are in front of this one.
    Synced(u64),
}

/// How a server ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct McpEnd {
    /// Its exit code.
    pub exit: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<u8>,
}

impl Frame {
    /// Writes the frame.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (number, end, stamped);
        let (kind, bytes): (u8, &[u8]) = match self {
            Frame::Hello(bytes) => (0, bytes),
            Frame::Sent(side, at, bytes) => {
                stamped = [&at.to_be_bytes(), bytes.as_slice()].concat();
                (if *side == McpSide::Client { 1 } else { 2 }, &stamped)
            }
            Frame::LeftOut(side, count) => {
                number = count.to_be_bytes();
                (if *side == McpSide::Client { 3 } else { 4 }, &number)
            }
            Frame::ClientEnd => (5, &[]),
            Frame::Ended(McpEnd { exit, signal }) => {
                let byte = |value: &Option<u8>| value.map_or([0, 0], |value| [1, value]);
                end = [byte(exit), byte(signal)].concat();
                (6, &end)
            }
            Frame::Known => (7, &[]),
            Frame::Unknown => (8, &[]),
            Frame::Sync(count) | Frame::Synced(count) => {
                number = count.to_be_bytes();
                (if matches!(self, Frame::Sync(_)) { 9 } else { 10 }, &number)
            }
        };
        let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut head = vec![kind];
        head.extend_from_slice(&length.to_be_bytes());
        to.write_all(&head)?;
        to.write_all(bytes)
    }

    /// Reads a frame; `None` if the other side sends no more.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut kind = [0];
        if from.read(&mut kind)? == 0 {
            return Ok(None);
        }
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > FRAME_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        Frame::of(kind[0], bytes).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn of(kind: u8, bytes: Vec<u8>) -> Option<Frame> {
        let count = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        let byte = |flag: u8, value: u8| (flag == 1).then_some(value);
        Some(match (kind, bytes) {
            (0, bytes) => Frame::Hello(bytes),
            (kind @ (1 | 2), bytes) => {
                let side = if kind == 1 { McpSide::Client } else { McpSide::Server };
                let (at, sent) = bytes.split_at_checked(8)?;
                Frame::Sent(side, count(at)?, sent.to_vec())
            }
            (3, bytes) => Frame::LeftOut(McpSide::Client, count(&bytes)?),
            (4, bytes) => Frame::LeftOut(McpSide::Server, count(&bytes)?),
            (5, _) => Frame::ClientEnd,
            (6, bytes) => {
                let [has_exit, exit, has_signal, signal] = *bytes.as_slice() else { return None };
                Frame::Ended(McpEnd { exit: byte(has_exit, exit), signal: byte(has_signal, signal) })
            }
            (7, _) => Frame::Known,
            (8, _) => Frame::Unknown,
            (9, bytes) => Frame::Sync(count(&bytes)?),
            (10, bytes) => Frame::Synced(count(&bytes)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let frames = [
            Frame::Hello(b"{}".to_vec()),
            Frame::Sent(McpSide::Client, 7, b"one\n".to_vec()),
            Frame::Sent(McpSide::Server, 0, vec![0xff; 3]),
            Frame::LeftOut(McpSide::Client, 7),
            Frame::LeftOut(McpSide::Server, u64::MAX),
            Frame::ClientEnd,
            Frame::Ended(McpEnd { exit: None, signal: Some(9) }),
            Frame::Ended(McpEnd { exit: Some(3), signal: None }),
            Frame::Known,
            Frame::Unknown,
            Frame::Sync(1),
            Frame::Synced(2),
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).unwrap());
        let mut from = bytes.as_slice();
        let read = std::iter::from_fn(|| Frame::read(&mut from).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), frames);
    }

    #[test]
    fn other_bytes_are_no_frame() {
        for bytes in
            [&[99, 0, 0, 0, 0][..], &[1, 0xff, 0, 0, 0], &[1, 0, 0, 0, 2, 1], &[6, 0, 0, 0, 1, 1], &[1, 0]]
        {
            assert!(Frame::read(&mut &*bytes).is_err(), "{bytes:?}");
        }
    }
}
