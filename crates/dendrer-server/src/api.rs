//! The description of the API (OpenAPI 3.1), made of the table of routes and of the schemas.

use dendrer_object::{Object, Value};
use dendrer_view::schemas;

use crate::route::{MemberKind, ROUTES, Route, is_refused};
use crate::writing::WRITES;

/// Paths that ask no question, or answer one in another form than its document.
const OTHERS: [(&str, &str); 15] = [
    ("/run/{run}/badge.json", "How far this server has verified the run; reading it begins a verification"),
    ("/run/{run}/t/{tick}/value", "The value at `path` as it is: a text, or JSON"),
    ("/run/{run}/log.svg", "The timeline as a picture"),
    ("/run/{run}/bisect.svg", "The probes of a bisect as a picture"),
    ("/run/{run}/layout.svg", "A picture of `layout.json`"),
    ("/runs.csv", "The items of `runs.json` as a table"),
    ("/run/{run}/log.csv", "The items of `log.json` as a table"),
    ("/run/{run}/diff.csv", "The items of `diff.json` as a table"),
    ("/run/{run}/log.jsonl", "The items of `log.json`, one a line; so for each document"),
    ("/run/{run}/first.jsonl", "The items of `first.json`, one a line, after lines of progress"),
    ("/events", "Server-sent events: runs that became longer"),
    ("/run/{run}/events", "Server-sent events: transitions, refusals and the end of a run"),
    ("/schema/{name}.json", "A schema"),
    ("/openapi.json", "This description"),
    ("/version.json", "The version of the program"),
];

/// Returns the description.
pub(crate) fn document() -> Value {
    let mut paths = Object::default();
    for route in ROUTES {
        let path: String = route.path.iter().map(|segment| format!("/{segment}")).collect();
        paths.set(&format!("{path}.json"), Value::record([("get", operation(route))]));
    }
    for (path, words) in OTHERS {
        let named = path.split(['/', '.']).filter(|part| part.starts_with('{'));
        let of_path = named.map(|part| parameter(part.trim_matches(['{', '}']), "path", "string"));
        paths.set(path, Value::record([("get", described(words, of_path.collect()))]));
    }
    for (path, words) in WRITES {
        paths.set(path, Value::record([("post", described(words, Vec::new()))]));
    }
    let names: Vec<&str> = ROUTES.iter().map(|route| route.question).collect();
    for name in
        names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name)).map(|(_, name)| name)
    {
        let path = format!("/ask/{}", name.trim_end_matches("-question"));
        let schema = schemas::find(name).unwrap_or(Value::Null);
        let body = Value::record([(
            "content",
            Value::record([("application/json", Value::record([("schema", schema)]))]),
        )]);
        let mut asked = described("The answer of a question that is given as its document", Vec::new());
        if let Value::Object(members) = &mut asked {
            members.set("requestBody", body);
        }
        paths.set(&path, Value::record([("post", asked)]));
    }
    Value::record([
        ("openapi", Value::from("3.1.0")),
        (
            "info",
            Value::record([
                ("title", Value::from("dendrer")),
                ("version", Value::from(env!("CARGO_PKG_VERSION"))),
            ]),
        ),
        ("paths", Value::Object(paths)),
    ])
}

/// Describes the `GET` of a route.
fn operation(route: &Route) -> Value {
    let of_path = route
        .path
        .iter()
        .filter(|segment| segment.starts_with('{'))
        .map(|segment| parameter(segment.trim_matches(['{', '}']), "path", "string"));
    let own = route.members().iter().filter(|(name, kind)| {
        *kind != MemberKind::Other
            && (name == "all_of" || !is_refused(name, &Value::Null))
            && !route.names_run(name)
    });
    let of_query = own.map(|(name, kind)| {
        let kind = match kind {
            MemberKind::Boolean => "boolean",
            MemberKind::Number => "integer",
            _ => "string",
        };
        let shown = route.names.iter().find(|(_, member)| member == name).map_or(&**name, |(shown, _)| shown);
        parameter(shown, "query", kind)
    });
    let words =
        format!("The document of `{}`", route.question.trim_end_matches("-question").replace('-', " "));
    described(&words, of_path.chain(of_query).collect())
}

fn parameter(name: &str, place: &str, kind: &str) -> Value {
    Value::record([
        ("name", Value::from(name)),
        ("in", Value::from(place)),
        ("required", Value::from(place == "path")),
        ("schema", Value::record([("type", Value::from(kind))])),
    ])
}

fn described(words: &str, parameters: Vec<Value>) -> Value {
    let response = |words: &str| Value::record([("description", Value::from(words))]);
    Value::record([
        ("summary", Value::from(words)),
        ("parameters", Value::array(parameters)),
        (
            "responses",
            Value::record([("200", response("the document")), ("default", response("dendrer.error/1"))]),
        ),
    ])
}
