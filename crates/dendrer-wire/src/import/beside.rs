//! The digest of a source, made beside the reading of it.
//!
//! A processor without SHA extensions hashes about as fast as a chat is read, so that a large source would take twice as
//! long. The digest does not depend on the thread, and a small source is hashed by its reader.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use dendrer_object::Digest;
use ring::digest::{Context, SHA256};

/// How many bytes are hashed on the spot before a thread is worth its start.
const LARGE: usize = 1 << 20;

/// How many pieces may wait for the thread. Each has at most one buffer of bytes.
const WAITING: usize = 16;

/// A digest under way.
pub(crate) enum Beside {
    /// On the spot, with how many bytes were hashed.
    Here(Context, usize),
    /// By a thread.
    There(SyncSender<Vec<u8>>, JoinHandle<Context>),
}

impl Beside {
    pub(crate) fn new() -> Beside {
        Beside::Here(Context::new(&SHA256), 0)
    }

    /// Takes in more bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Beside::Here(context, size) => {
                context.update(bytes);
                *size += bytes.len();
                if *size >= LARGE
                    && let Some(there) = there(context)
                {
                    *self = there;
                }
            }
            Beside::There(sender, _) => {
                sender.send(bytes.to_vec()).expect("the thread ends when the sender is gone");
            }
        }
    }

    /// Returns the digest of all bytes.
    pub(crate) fn finish(self) -> Digest {
        let context = match self {
            Beside::Here(context, _) => context,
            Beside::There(sender, thread) => {
                drop(sender);
                thread.join().expect("hashing does not panic")
            }
        };
        Digest(context.finish().as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }
}

/// Moves the hashing to a thread; `None` if there is no processor for one.
fn there(context: &Context) -> Option<Beside> {
    thread::available_parallelism().ok().filter(|count| count.get() > 1)?;
    let (sender, receiver) = sync_channel::<Vec<u8>>(WAITING);
    let mut context = context.clone();
    let hash = move || {
        receiver.iter().for_each(|bytes| context.update(&bytes));
        context
    };
    let thread = thread::Builder::new().name("dendrer-digest".to_owned()).spawn(hash).ok()?;
    Some(Beside::There(sender, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_same_wherever_it_is_made() {
        let bytes: Vec<u8> = (0..3 * LARGE + 5).map(|n| (n * 31 % 251) as u8).collect();
        for size in [0, 1, LARGE - 1, LARGE, LARGE + 1, 2 * LARGE + 77, bytes.len()] {
            for piece in [1 << 12, 60_000, 1 << 16] {
                let mut beside = Beside::new();
                bytes[..size].chunks(piece).for_each(|bytes| beside.update(bytes));
                assert_eq!(beside.finish(), Digest::of(&bytes[..size]), "{size} in pieces of {piece}");
            }
        }
    }

    /// Reading may end with an error: then the digest is dropped.
    #[test]
    fn a_digest_may_be_given_up() {
        let mut beside = Beside::new();
        (0..40).for_each(|_| beside.update(&[7; 1 << 16]));
        drop(beside);
    }
}
