//! A matrix of secrets: each once in every field of every kind of line, in each spelling that some rule takes.
//!
//! A canary has one number, so a failure names field, type and spelling. `DENDRER_DEEP=1` takes all cells, and else a
//! sample, which `DENDRER_SEED` draws.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dendrer_kernel::ontology::{Class, TYPES};
use dendrer_object::intent::line::MEMBERS;
use dendrer_object::{Value, json};
use dendrer_testkit::Dice;

use crate::secrets::pat;
use crate::support::{Place, parse};

/// Spellings of a password: `@` is the canary.
const SPELLINGS: &[&str] = &[
    "DB_PASSWORD=@",
    "export API_KEY='@'\nset +x",
    "db:\n  user: bob\n  password: \"@\"\n",
    "password: |\n  @\nport: 80\n",
    "- name: DB_PASSWORD\n  value: @\n",
    "[db]\nuser=bob\npassword=@\n",
    "[db]\npassword = \"@\"\n",
    "machine h login bob password @",
    "> Authorization: Bearer @\r\n> Accept: */*",
    "X-Api-Key: @",
    "Cookie: theme=dark; session=@",
    "Set-Cookie: sid=@; Path=/; HttpOnly",
    "curl -u bob:@ https://h.example/",
    "mysql -u root -p@ app",
    "deploy --token @ --verbose",
    "[\"login\", \"--password\", \"@\"]",
    "{\"user\":\"bob\",\"password\":\"@\"}",
    "{\"a\":\"{\\\"user\\\":\\\"bob\\\",\\\"password\\\":\\\"@\\\"}\"}",
    "{'user': 'bob', 'password': '@'}",
    "user,password\nbob,@\n",
    "| user | password |\n| --- | --- |\n| bob | @ |\n",
    "USER  PASSWORD\nbob   @\n",
    "<input type=\"password\" name=\"password\" value=\"@\">",
    "<db><password>@</password></db>",
    "apiVersion: v1\nkind: Secret\nstringData:\n  db: @\n",
    "postgres://bob:@@db:5432/app",
    "GET https://h.example/x?access_token=@&page=2",
    "payload=%7B%22password%22%3A%22@%22%7D",
    "the password for bob is @",
    "use @ as the password",
    "das Passwort lautet @",
    "ALTER USER bob IDENTIFIED BY '@'",
    "db:5432:app:bob:@",
    "Server=db;User Id=bob;Password=@;Encrypt=True",
    "echo @ | docker login --password-stdin",
    "\u{1b}[32mpassword\u{1b}[0m: \u{1b}[1m@\u{1b}[0m",
    "password=3D@=\nX-Other: 3D",
    "{&quot;password&quot;:&quot;@&quot;}",
    "page.fill('#password', '@')",
    "- textbox \"Password\" [ref=e9]: @",
    "2026-03-02 | INFO | password=@\n2026-03-02 | INFO | started\n",
];

/// Spellings in which the canary is encoded as a whole: `@` in the text, and what the store must not have of it.
const ENCODED: &[fn(&str) -> (String, String)] = &[
    |canary| {
        let made = STANDARD.encode(format!("DB_PASSWORD={canary}\nPORT=80\n"));
        (format!("config: {made}"), made)
    },
    |canary| {
        let made: String = format!("password={canary}\n").bytes().map(|c| format!("{c:02x}")).collect();
        (made.clone(), made)
    },
    |canary| {
        let wide: Vec<u8> = format!("$password='{canary}'").bytes().flat_map(|c| [c, 0]).collect();
        let made = STANDARD.encode(wide);
        (format!("powershell -enc {made}"), made)
    },
    |canary| {
        let made = STANDARD.encode(canary);
        (format!("apiVersion: v1\nkind: Secret\ndata:\n  db: {made}\n"), made)
    },
    |canary| {
        let line = format!("the login of the build used {} and ended", pat(number_of(canary)));
        let at = line.len() - 30;
        let wrapped = format!("{:70}{}\n{}", "log:", &line[..at], &line[at..]);
        (wrapped, line[at - 8..at].to_owned())
    },
    |canary| {
        let body = STANDARD.encode(canary.repeat(12));
        let lines: Vec<&str> = (0..body.len() / 64).map(|at| &body[at * 64..at * 64 + 64]).collect();
        let block = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
        (block, lines[1].to_owned())
    },
    |canary| (format!("cloned with {}", pat(number_of(canary))), pat(number_of(canary))),
];

/// Values that are no texts: the canary beside the name of one.
const VALUES: &[&str] = &[
    r#"{"user":"bob","password":"@"}"#,
    r#"{"env":[{"name":"DB_PASSWORD","value":"@"}]}"#,
    r#"{"headers":{"Authorization":"Bearer @"}}"#,
    r#"["--password","@"]"#,
    r#"[["api_key","@"]]"#,
];

/// The places of a line, by the member that they are in: `"@"` is a text with the canary, `"#"` any value.
const PLACES: &[(&str, &str)] = &[
    ("agent", r#""agent":"@""#),
    ("goal", r#""goal":"@""#),
    ("intent", r##""intent":{"description":"@"}"##),
    ("intent", r##""intent":{"uncertainty_notes":"#"}"##),
    ("intent", r##""intent":{"own":{"deep":["#"]}}"##),
    ("intent", r#""intent":{"@":1}"#),
    ("uncertainty_notes", r##""uncertainty_notes":["#"]"##),
    ("action", r#""action":{"tool":"@"}"#),
    ("action", r##""action":{"tool":"t","params":{"x":"#"}}"##),
    ("action", r##""action":{"tool":"t","call_id":"@"}"##),
    ("action", r##""action":{"calls":[{"tool":"t","params":{"x":"#"}}]}"##),
    ("result", r##""result":{"status":"ok","output":"#"}"##),
    ("result", r##""result":{"status":"@"}"##),
    ("result", r##""result":{"status":"error","error":"#"}"##),
    ("policy", r##""policy":{"decision":"allow","notes":"#"}"##),
    ("policy", r##""policy":{"decision":"deny","checks":["#"],"policy_version":"@"}"##),
    ("metrics", r##""metrics":{"tokens_used":1,"own":"#"}"##),
    ("anomalies", r##""anomalies":[{"kind":"odd","text":"@","own":"#"}]"##),
    ("key", r#""key":"@""#),
    ("evidence", r##""evidence":[{"id":"e","source":"s","claim":"@"}]"##),
    ("commitments", r##""commitments":[{"id":"c","text":"@"}]"##),
    ("edges", r##""edges":[{"from":"@","to":"x"}]"##),
    ("closes", r##""closes":[{"id":"@"}]"##),
    ("adopts", r##""adopts":["@"]"##),
    ("user", r#""user":"@""#),
    ("links", r##""links":[{"rel":"@"}]"##),
    ("delta", r##""delta":[{"set":"/x","value":"#"}]"##),
    ("delta", r##""delta":[{"append":"/list","value":"#"}]"##),
    ("delta", r##""delta":[{"set":"/by","value":{"deep":["#"]}}]"##),
    ("reads", r##""reads":["/@"]"##),
    ("step", r##""step":{"action":"tool_call","name":"n","input":{"x":"#"},"output":"#"}"##),
    ("step", r##""step":{"action":"gate","name":"n","input":{"x":"#"},"output":{"code":"@"}}"##),
    ("effect", r#""effect":"@""#),
    ("fork_type", r#""fork_type":"@""#),
    ("author", r#""author":"@""#),
    ("type", r#""intent":{"description":"@"}"#),
    ("confidence", r#""confidence":"@""#),
    ("base", r#""base":"@""#),
    // Lines that are refused.
    ("", r##""nonsense":"#""##),
    ("", r#""@":1"#),
];

/// The mark of a canary, which no other text has, and its end.
const MARK: &str = "Zk9q";

fn canary(number: u64) -> String {
    format!("{MARK}{number:05}tW4mX")
}

fn number_of(canary: &str) -> u64 {
    canary[MARK.len()..MARK.len() + 5].parse().unwrap()
}

struct Cell {
    line: String,
    /// What no file may have.
    needles: Vec<String>,
    what: String,
}

/// The line of a type with a canary at a place, in a spelling.
fn cell(number: u64, type_name: &str, place: &str, spelling: usize) -> Option<Cell> {
    let canary = canary(number);
    let mut needles = vec![canary.clone()];
    let text = match SPELLINGS.get(spelling) {
        // The first `@` of an address is the canary.
        Some(text) if text.contains("://bob:@@") => text.replacen('@', &canary, 1),
        Some(text) => text.replace('@', &canary),
        None if spelling - SPELLINGS.len() < ENCODED.len() => {
            let (text, needle) = ENCODED[spelling - SPELLINGS.len()](&canary);
            needles.push(needle);
            text
        }
        None => {
            let value = VALUES[spelling - SPELLINGS.len() - ENCODED.len()].replace('@', &canary);
            let line = place.contains("\"#\"").then(|| place.replace("\"#\"", &value).replace('@', "x"))?;
            return Some(Cell { line: of(type_name, &line), needles, what: format!("{type_name} {line}") });
        }
    };
    let quoted = json::to_string(&Value::from(text));
    let line = place.replace('@', &quoted[1..quoted.len() - 1]).replace("\"#\"", &quoted);
    Some(Cell { line: of(type_name, &line), needles, what: format!("{type_name} {line}") })
}

fn of(type_name: &str, members: &str) -> String {
    // A step stands in place of the type.
    if members.starts_with("\"step\"") {
        return format!("{{{members}}}");
    }
    format!(r#"{{"type":"{type_name}",{members}}}"#)
}

/// All cells, or a sample that a seed draws.
fn cells() -> Vec<Cell> {
    let is_deep = std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1");
    let spellings = SPELLINGS.len() + ENCODED.len() + VALUES.len();
    let kinds: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
    let seed = std::env::var("DENDRER_SEED").ok().and_then(|text| text.parse().ok());
    let mut dice = Dice(seed.unwrap_or(17));
    let mut made = Vec::new();
    let mut number = 0;
    for (at, (_, place)) in PLACES.iter().enumerate() {
        for spelling in 0..spellings {
            for (of_type, kind) in kinds.iter().enumerate() {
                // Each spelling is in some place of each push, and each place with some type.
                let is_drawn = (at + spelling + of_type) % 7 == 0 && dice.below(9) == 0;
                if is_deep || is_drawn {
                    number += 1;
                    made.extend(cell(number, kind, place, spelling));
                }
            }
        }
    }
    made
}

/// The bytes of every file below a folder, as text.
fn files(dir: &Path, made: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, made);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            made.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

/// How many bytes of a needle are looked for first.
const HEAD: usize = 8;

/// The canaries that some text has, each with the place of it.
fn leaks(cells: &[Cell], texts: &[(String, String)]) -> Vec<String> {
    let mut heads: HashMap<&[u8], Vec<(&str, &str)>> = HashMap::new();
    for cell in cells {
        for needle in &cell.needles {
            heads.entry(&needle.as_bytes()[..HEAD]).or_default().push((needle, &cell.what));
        }
    }
    let mut found = BTreeSet::new();
    for (name, text) in texts {
        for (at, head) in text.as_bytes().windows(HEAD).enumerate() {
            for (needle, what) in heads.get(head).into_iter().flatten() {
                if text.as_bytes()[at..].starts_with(needle.as_bytes()) {
                    found.insert(format!("{name}: {what}"));
                }
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn no_canary_of_any_field_is_in_a_file_an_answer_or_a_bundle() {
    let named: BTreeSet<&str> = PLACES.iter().map(|(member, _)| *member).collect();
    for member in MEMBERS {
        let is_other = ["transition_type", "agent_id", "goal_id"].contains(&member.name);
        assert!(is_other || named.contains(member.name), "no place has a canary in {}", member.name);
    }
    assert!(TYPES.iter().any(|(_, class)| *class == Class::System));
    let cells = cells();
    let lines: String = cells.iter().map(|cell| format!("{}\n", cell.line)).collect();
    let place = Place::with_store();
    let args = ["commit", "--run", "r", "--as", "runtime", "--jsonl"];
    let mut texts = Vec::new();
    let ran = place.run_with(&args, lines.as_bytes());
    texts.push(("answer".to_owned(), ran.stdout));
    texts.push(("errors".to_owned(), ran.stderr));
    let cut = place.run_with(&["commit", "--run", "cut"], lines[..lines.len() / 2].as_bytes());
    texts.push(("answer to people".to_owned(), cut.stdout + &cut.stderr));
    place.ok(&["export", "r", "-o", "r.dnd"]);
    for args in [vec!["log", "r", "--refusals"], vec!["log", "r"], vec!["runs"]] {
        texts.push((args.join(" "), place.run(&args).stdout));
    }
    files(place.path(), &mut texts);
    let found = leaks(&cells, &texts);
    assert!(found.is_empty(), "{} of {} cells:\n{}", found.len(), cells.len(), found.join("\n"));
}

/// What is recorded as it is, is found.
#[test]
fn a_scan_finds_each_canary_of_a_run_that_is_not_redacted() {
    let cells = cells();
    let place = Place::with_store();
    let lines: String = cells.iter().map(|cell| format!("{}\n", cell.line)).collect();
    let args = ["commit", "--run", "open", "--as", "runtime", "--redact", "none", "--jsonl"];
    let ran = place.run_with(&args, lines.as_bytes());
    let (_, answer) = place.json(&["secrets", "scan", "open"]);
    let items = answer.get("items").unwrap().as_array().unwrap();
    let number = |item: &Value, name: &str| item.get(name).and_then(Value::as_u64);
    let found: BTreeSet<(bool, u64)> = items
        .iter()
        .filter_map(|item| {
            let refused = number(item, "refused").map(|at| (true, at));
            refused.or_else(|| number(item, "tick").map(|at| (false, at)))
        })
        .collect();
    let (mut left, mut looked_at) = (Vec::new(), 0);
    let mut refused = 0;
    for reply in ran.stdout.lines().map(parse) {
        let Some(line) = number(&reply, "line") else { continue };
        let what = reply.get("what").and_then(Value::as_str);
        let place = match what {
            Some("committed") => (false, number(&reply, "tick").unwrap()),
            Some("refused") => {
                refused += 1;
                (true, refused)
            }
            _ => continue,
        };
        let is_kept = reply.get("id").is_some_and(|id| id.as_str().is_some());
        looked_at += usize::from(is_kept);
        if is_kept && !found.contains(&place) {
            left.push(cells[line as usize - 1].what.clone());
        }
    }
    assert!(looked_at * 10 > cells.len() * 9, "{looked_at} of {} lines are on record", cells.len());
    assert!(left.is_empty(), "{} of {} are not found:\n{}", left.len(), cells.len(), left.join("\n"));
}
