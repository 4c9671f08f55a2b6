//! Paths and queries of requests, decoded.

use dendrer::problem::Problem;
use dendrer_object::Code;
use percent_encoding::percent_decode_str;

/// The form of a document that the end of a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The page.
    Page,
    /// The document.
    Json,
    /// The items of the document, one a line.
    Lines,
    /// The items of the document as a table.
    Csv,
    /// A picture.
    Svg,
}

/// The ends of paths, with the forms that they ask for.
const ENDS: [(&str, Form); 4] =
    [(".jsonl", Form::Lines), (".json", Form::Json), (".csv", Form::Csv), (".svg", Form::Svg)];

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The decoded segments; the last one without its end.
    pub(crate) segments: Vec<String>,
    /// The form that the end asks for.
    pub(crate) form: Form,
    /// Names and values of the query, in their order.
    pub(crate) query: Vec<(String, String)>,
}

impl Target {
    /// Reads the path and the query of a request.
    ///
    /// # Errors
    ///
    /// E0106 if a part is not UTF-8, or a segment leads upwards.
    pub(crate) fn read(path: &str, query: Option<&str>) -> Result<Target, Problem> {
        let mut segments = Vec::new();
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            let segment = decode(segment)?;
            if segment == "." || segment == ".." || segment.contains('\0') {
                return Err(Problem::new(Code::E0106, "a segment of the path is no name"));
            }
            segments.push(segment);
        }
        let mut form = Form::Page;
        // A document of a run has its name after the run, so the end of a run is part of its name.
        let is_run = matches!(&segments[..], [first, _] if first == "run");
        if !is_run
            && let Some(last) = segments.last_mut()
            && let Some((end, found)) =
                ENDS.iter().find(|(end, _)| last.len() > end.len() && last.ends_with(end))
        {
            last.truncate(last.len() - end.len());
            form = *found;
        }
        Ok(Target { segments, form, query: pairs(query.unwrap_or_default())? })
    }

    /// Takes the value of a name out of the query.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.query.iter().position(|(known, _)| known == name)?;
        Some(self.query.remove(at).1)
    }
}

/// Reads a query: `a=1&b=x%20y`.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode(&name.replace('+', " "))?, decode(&value.replace('+', " "))?))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

fn decode(text: &str) -> Result<String, Problem> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(String::from)
        .map_err(|_| Problem::new(Code::E0106, "the address of the request is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, query: &str) -> Target {
        Target::read(path, Some(query)).expect("the target is one")
    }

    #[test]
    fn segments_and_names_are_decoded() {
        let target = read("/run/shop%2Fa%2B2/log.json", "grep=a+b%2B&type=x&type=y&links");
        assert_eq!(target.segments, ["run", "shop/a+2", "log"]);
        assert_eq!(target.form, Form::Json);
        let query: Vec<_> = target.query.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(query, [("grep", "a b+"), ("type", "x"), ("type", "y"), ("links", "")]);
    }

    #[test]
    fn the_name_of_a_run_may_end_as_a_document_does() {
        assert_eq!(read("/run/a.json/log.jsonl", "").segments, ["run", "a.json", "log"]);
        assert_eq!(read("/run/a.json/log", "").form, Form::Page);
        assert_eq!(read("/run/a.json", "").segments, ["run", "a.json"]);
    }

    #[test]
    fn a_path_does_not_lead_upwards() {
        for path in ["/run/../x.json", "/run/%2e%2e/x.json", "/%ff", "/run/a%00b/log.json"] {
            assert!(Target::read(path, None).is_err(), "{path}");
        }
    }
}
