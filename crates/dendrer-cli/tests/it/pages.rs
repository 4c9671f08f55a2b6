//! Pages as a stranger reads them: links lead somewhere, every page has a line in `docs/README.md`, and a first screen uses no
//! word of the glossary that it does not explain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Lists the Markdown files of a directory, as paths below the repository.
fn pages_in(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap());
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut found: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    found.sort();
    let beside = |name: String| if directory.is_empty() { name } else { format!("{directory}/{name}") };
    found.into_iter().map(beside).collect()
}

/// Removes fenced blocks and quoted code, which are no prose. Lines stay where they are.
fn prose(page: &str) -> String {
    let quoted = Regex::new("`[^`\n]*`").unwrap();
    let mut is_block = false;
    let lines = page.lines().map(|line| {
        let is_fence = line.starts_with("```");
        is_block ^= is_fence;
        if is_block || is_fence { String::new() } else { quoted.replace_all(line, "``").into_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lists the targets of links and pictures.
fn targets(prose: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    link.captures_iter(prose).map(|found| found[1].to_owned()).collect()
}

/// Lists the names that the headings of a page can be linked by, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut is_block = false;
    let named = Regex::new(r#"<a name="([^"]+)">"#).unwrap();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in page.lines() {
        is_block ^= line.starts_with("```");
        found.extend(named.captures_iter(line).map(|name| name[1].to_owned()));
        let text = line.trim_start_matches('#');
        if is_block || text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name: String = text.trim().to_lowercase().chars().filter(is_kept).collect();
        let name = name.replace(' ', "-");
        let before = times.entry(name.clone()).or_default();
        found.insert(if *before == 0 { name } else { format!("{name}-{before}") });
        *before += 1;
    }
    found
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let directories = ["", "docs", "docs/design", "examples/packs", "examples/commitments"];
    let mut dead = Vec::new();
    for page in directories.iter().flat_map(|directory| pages_in(directory)) {
        let text = read(&page);
        for target in targets(&prose(&text)) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let path = match file {
                "" => root().join(&page),
                file => root().join(&page).parent().unwrap().join(file),
            };
            let is_page = path.extension().is_some_and(|end| end == "md");
            let leads = path.exists()
                && (anchor.is_empty()
                    || !is_page
                    || anchors(&std::fs::read_to_string(&path).unwrap()).contains(anchor));
            if !leads {
                dead.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// A group of `docs/README.md`: the pages that its lines link first, in order.
fn group(name: &str) -> Vec<String> {
    let first = read("docs/README.md");
    let lines = first.lines().skip_while(|line| *line != format!("## {name}")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("* "));
    let pages = lines.map(|line| targets(line).into_iter().next().expect("a line links its page"));
    pages
        .map(|page| if page.starts_with("../") { page[3..].to_owned() } else { format!("docs/{page}") })
        .collect()
}

#[test]
fn each_page_has_one_line_in_the_first_page_of_docs() {
    let mut listed: Vec<String> = ["Learn", "Use", "Maintain"].iter().flat_map(|name| group(name)).collect();
    let mut expected = [pages_in("docs"), pages_in("docs/design")].concat();
    expected.retain(|page| page != "docs/README.md");
    listed.retain(|page| page.starts_with("docs/") && page.ends_with(".md"));
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
}

/// Words of the glossary that a stranger knows in the sense that they have here.
const KNOWN: [&str; 12] =
    ["agent", "run", "record", "step", "state", "log", "store", "rule", "fork", "path", "commit", "link"];

/// Lists the words of the glossary, one a member.
fn glossary() -> Vec<String> {
    let page = read("docs/glossary.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let in_brackets = Regex::new(r"\([^)]*\)").unwrap();
    let words = rows.map(|(word, _)| in_brackets.replace_all(word, "").trim().to_owned());
    let each: Vec<String> =
        words.flat_map(|word| word.split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    each.into_iter().filter(|word| word != "we say" && word != "---").collect()
}

/// Whether a text has a word, alone or in the plural.
fn has_word(text: &str, word: &str) -> bool {
    Regex::new(&format!(r"(?i)\b{}(s|es)?\b", regex::escape(word))).unwrap().is_match(text)
}

/// Whether a text says what a word is: the sentence that does has the word between stars. A link leads to its page.
fn explains(text: &str, word: &str) -> bool {
    let word = regex::escape(word);
    let marked = format!(r"(?i)\*[^*\n]*\b{word}(s|es)?\b[^*\n]*\*|\[[^\]\n]*\b{word}(s|es)?\b[^\]\n]*\]\(");
    Regex::new(&marked).unwrap().is_match(text)
}

#[test]
fn a_first_screen_explains_its_words() {
    let words = glossary();
    assert!(
        words.len() > 70 && KNOWN.iter().all(|known| words.iter().any(|word| word == known)),
        "{words:?}"
    );
    let mut found = Vec::new();
    for page in group("Learn").into_iter().chain(["README.md".to_owned()]) {
        if page == "docs/glossary.md" {
            continue;
        }
        let screen: String = prose(&read(&page)).lines().take(60).map(|line| format!("{line}\n")).collect();
        let unknown = words.iter().filter(|word| !KNOWN.contains(&word.as_str()));
        for word in unknown.filter(|word| has_word(&screen, word) && !explains(&screen, word)) {
            found.push(format!("{page}: {word}"));
        }
    }
    assert!(found.is_empty(), "words that a stranger has to look up:\n{}", found.join("\n"));
}

#[test]
fn the_readme_is_short_and_in_plain_words() {
    let page = read("README.md");
    let words = page.split_whitespace().count();
    assert!(words <= 700, "{words} words");
    let inside = [
        "kernel",
        "delta",
        "reducer",
        "transition",
        "intent",
        "onset",
        "tick",
        "stage",
        "frontier",
        "salted",
        "canonical",
        "casebook",
    ];
    let prose = prose(&page);
    for word in inside.iter().filter(|word| has_word(&prose, word)) {
        let first = Regex::new(&format!(r"(?i)\b{word}(s|es)?\b")).unwrap().find(&prose).unwrap().start();
        let sentence = &prose[first.saturating_sub(1)..];
        assert!(sentence.starts_with('*'), "{word} is used before it is explained");
    }
    for link in
        ["docs/README.md#learn", "docs/README.md#use", "docs/README.md#maintain", "docs/pictures/bisect.svg"]
    {
        assert!(page.contains(&format!("({link})")), "{link}");
    }
}

/// Pages whose text a test makes.
const MADE: [&str; 2] = ["docs/import-tables.md", "docs/design/doors.md"];

#[test]
fn lines_of_pages_are_at_most_120_wide() {
    let mut wide = Vec::new();
    let pages = [vec!["README.md".to_owned()], pages_in("docs"), pages_in("docs/design")].concat();
    for page in pages.into_iter().filter(|page| !MADE.contains(&&**page)) {
        // A piece of code is not broken, and counts as nothing.
        for (at, line) in prose(&read(&page)).lines().enumerate() {
            if !line.starts_with(['|', ' ']) && line.chars().count() > 120 {
                wide.push(format!("{page}:{}", at + 1));
            }
        }
    }
    assert!(wide.is_empty(), "{wide:?}");
}

/// The lengths of the sentences of a page, in words: without blocks, tables and headings, a piece of code as one word.
fn sentences(page: &str) -> Vec<usize> {
    let kept = |line: &str| if line.starts_with(['|', '#']) { String::new() } else { line.to_owned() };
    let text: String = prose(&read(page)).lines().map(|line| kept(line) + "\n").collect();
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let text = link.replace_all(&text, "$1").replace("``", "X");
    let parts = Regex::new(r"\n\s*\n|\n\s*(?:\*|-|\d+\.) |[.!?]\s+").unwrap();
    let word = Regex::new(r"[\w'-]+").unwrap();
    parts.split(&text).map(|part| word.find_iter(part).count()).filter(|count| *count > 1).collect()
}

/// The sentences of pages that people read are short: half of them have 13 words or less, and at most 4 of 100 more than 30.
#[test]
fn sentences_of_pages_are_short() {
    let mut long = Vec::new();
    let pages = ["Learn", "Use"].iter().flat_map(|name| group(name));
    for page in pages.filter(|page| page.ends_with(".md") && !MADE.contains(&&**page)) {
        let mut lengths = sentences(&page);
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
        let share = lengths.iter().filter(|length| **length > 30).count() * 100;
        if median > 13 || share > 4 * lengths.len() {
            long.push(format!("{page}: median {median}, {share} of {} hundredths", lengths.len()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Each decision page names the choice, what lost and the figure, in at most 60 lines.
#[test]
fn a_decision_names_its_choice_its_loser_and_a_figure() {
    let older = ["causal-graph.md", "doors.md", "second-reader.md"];
    let decisions =
        pages_in("docs/design").into_iter().filter(|page| !older.iter().any(|name| page.ends_with(name)));
    let mut count = 0;
    for page in decisions {
        let text = read(&page);
        assert!(text.lines().count() <= 60, "{page}");
        for part in ["## Choice", "## What lost", "## Measured"] {
            let body = text.split(&format!("\n{part}\n")).nth(1).unwrap_or_else(|| panic!("{page}: {part}"));
            let body = body.split("\n## ").next().unwrap();
            assert!(!body.trim().is_empty(), "{page}: {part}");
            let has_figure = body.chars().any(|c| c.is_ascii_digit());
            assert!(part != "## Measured" || has_figure, "{page}: no figure");
        }
        count += 1;
    }
    assert_eq!(count, 11);
}
