//! Drawings, as DOT or SVG.

use dendrer_object::Code;
use dendrer_view::answer::Line;
use dendrer_view::graph::{Drawing, SVG_MAX};

use crate::failure::{Failure, Result};
use crate::out::Out;

/// Prints a drawing as DOT or SVG; `instead` says what to do where it is too large.
pub(crate) fn draw<'h>(
    drawing: &Drawing,
    form: &str,
    out: &mut Out,
    instead: impl FnOnce() -> (&'static str, Vec<&'h str>),
) -> Result {
    let text = match form {
        "dot" => drawing.dot(),
        _ => drawing.svg().ok_or_else(|| {
            let (title, boxes) = (&drawing.title, drawing.boxes.len());
            let what = format!("{title} has {boxes} boxes, and a drawing has {SVG_MAX} at most");
            let (note, help) = instead();
            Failure::new(Code::E0601, what).note(note).help(&help)
        })?,
    };
    out.print(text.lines().map(Line::from).collect())?;
    Ok(0)
}
