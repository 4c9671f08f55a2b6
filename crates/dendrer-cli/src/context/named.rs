//! Predicates that are named on the command line.

use dendrer::pack;
use dendrer_object::json;
use dendrer_object::text::behind_mark;

use super::packs;
use crate::failure::Result;

/// Reads a file of predicates as a question takes it: a list as JSON, or a pack with the modules that it names in it.
pub(crate) fn of_file(path: &str) -> Result<String> {
    let text = packs::read_file(path)?;
    let listed = json::parse_door(behind_mark(&text)).ok();
    if listed.is_none_or(|value| value.get("predicates").is_none()) {
        // The problems of a pack are told with their places in the file.
        packs::load(path)?;
        let value = pack::read_value(&text, packs::beside(path));
        return Ok(value.map_err(|problems| pack::unsound(path, &problems))?.to_string());
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
