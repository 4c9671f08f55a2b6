//! Foreign formats, one file each.

pub mod carl;
pub mod cfd;
pub(crate) mod jsonl;
pub(crate) mod openai_chat;
pub(crate) mod paper;
