//! Pictures of answers as SVG: the timeline of a run, and the probes of a bisect.
//!
//! A picture is made of an answer alone: no clock, no chance, no measured font. The same answer gives the same bytes.
//! Colours are classes, for a light and a dark page, and each goes with a shape and a word.
//!
//! Rule: text of a record enters a picture only escaped by [`quote`](crate::quote), and [`svg::markup`] makes entities of markup.

pub mod bisect;
pub mod svg;
pub mod timeline;

pub use self::svg::Frame;
