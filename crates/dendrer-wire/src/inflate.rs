//! Compressed sources: how far one may inflate, and the frames of Zstandard.
//!
//! Holds one window of a frame and nothing else. Rule: a reader of compressed bytes asks [`is_too_large`] before it keeps more of
//! them; test `a_bomb_is_refused_before_it_is_held`.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How many bytes a source may always inflate to.
const ALWAYS: u64 = 64 << 20;

/// How many times as many bytes as were read a source may inflate to beyond 64 MiB.
pub const TIMES: u64 = 200;

/// Whether a source inflated to more than it may, given how many bytes were read of it (forms-3, section 3).
pub fn is_too_large(size: u64, read: u64) -> bool {
    size > ALWAYS && size > read.saturating_mul(TIMES)
}

/// The frames of Zstandard, one after the other.
pub struct Frames<R> {
    read: R,
    frame: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    /// Begins to inflate.
    pub fn new(read: R) -> Frames<R> {
        Frames { read, frame: FrameDecoder::new(), is_in_frame: false }
    }

    /// Begins the next frame; false after the last.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            if self.read.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.frame.init(&mut self.read) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.read.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                self.is_in_frame = self.next()?;
                if !self.is_in_frame {
                    return Ok(0);
                }
            }
            if self.frame.can_collect() == 0 && !self.frame.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                let decoded = self.frame.decode_blocks(&mut self.read, some);
                decoded.map_err(|error| io::Error::other(error.to_string()))?;
            }
            let count = Read::read(&mut self.frame, buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.is_in_frame = !self.frame.is_finished();
        }
    }
}

impl<R> std::fmt::Debug for Frames<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("is_in_frame", &self.is_in_frame).finish_non_exhaustive()
    }
}
