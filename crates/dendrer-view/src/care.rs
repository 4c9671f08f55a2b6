//! Words for the notes on a store that work on it ends with.

use dendrer::care::CareNote;
use dendrer::care::problem::goes_anyway;
use dendrer::repo::Warning;

use crate::answer::Line;
use crate::problem::Problem;
use crate::{mark, quote};

/// Returns the reason why a log may not be all that was signed here.
pub fn doubt_words(warning: &Warning) -> String {
    match warning {
        Warning::HeadUnknown(error) => Problem::from_trust(error).told(),
        Warning::AnotherLog(why) => format!("this is not the log that was signed here: {why}"),
        Warning::Hidden(found) => mark::hides(found).unwrap_or_default(),
        Warning::Damaged(error) => error.to_string(),
        _ => String::new(),
    }
}

/// Returns the line of a note.
pub fn note_line(note: &CareNote) -> Line {
    Line::note(match note {
        CareNote::Warning(warning) => {
            format!("warning[{}]: {}", warning.code(), quote::escape(&doubt_words(warning)))
        }
        CareNote::LeftBeside(path) => format!(
            "note: {} is a store that a restore which was cut off left beside its place",
            quote::escape(&path.display().to_string())
        ),
        CareNote::HeadNotRead(error) => format!("note: {}", quote::escape(&Problem::of_error(error).told())),
        CareNote::IndexInUse(error) => format!(
            "note: the index is in use, so its file stays as large as it is for now ({})",
            quote::escape(&error.to_string())
        ),
        CareNote::IndexDoesNotOpen => {
            "note: the index does not open; dendrer doctor --fix makes it again".to_owned()
        }
        CareNote::NotCounted => {
            "note: the bundle is partial: the key of the log is not here, so no map counts the newest records"
                .to_owned()
        }
        CareNote::GoesAnyway(place) => goes_anyway(place),
        _ => String::new(),
    })
}
