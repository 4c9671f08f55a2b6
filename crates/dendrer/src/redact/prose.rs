//! Sentences that have a secret: `the password for bob is X`, `use X as the password`, `das Passwort lautet X`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::judge::{self, Setting};
use super::names::Strength;
use super::part::has_marker;
use super::quoted::{self, Ends};
use super::vendor::{SecretSpan, named_span};

/// How far a sentence is read from its name, in bytes.
const REACH: usize = 120;

/// Words between a name and its value.
const VERBS: &str = "is was are be been = : equals becomes became now lautet ist war sei wurde es era será sera est était sera è fu é foi \
    será reads to-> -> → => als como";

/// Words after such a verb that are not the value.
const ADVERBS: &str = "now set to still currently the just the following again temporarily changed reset updated replaced with by on \
    jetzt nun auf geändert gesetzt ahora maintenant désormais adesso agora simply actually literally called exactly always: this one \
    folgendes value string";

/// Words that deny what follows.
const DENIALS: &str =
    "not never no nicht kein keine without missing invalid wrong if whether unless isn't wasn't pas nunca";

/// Words between a value and the name after it.
const LINKS: &str = "as is for into in als ist como es comme est come è into: was";

/// Words between such a word and the name.
const ARTICLES: &str = "the a an my your our his her their its this new old temporary temp initial admin root master user default \
    current login account database db service wifi wi-fi ssh test das dem der die den la el le il lo o mi tu su votre mon ma meu sua \
    neue neues nueva nouveau mot de passe api access secret bearer auth main shared one-time personal";

/// The lists above, a bit each.
const LISTS: [&str; 5] = [VERBS, ADVERBS, DENIALS, LINKS, ARTICLES];
const VERB: u8 = 1;
const ADVERB: u8 = 2;
const DENIAL: u8 = 4;
const LINK: u8 = 8;
const ARTICLE: u8 = 16;

/// The lists that have a word.
fn lists_of(word: &str) -> u8 {
    static WORDS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| {
        let mut words = HashMap::new();
        for (bit, list) in LISTS.into_iter().enumerate() {
            for word in list.split_whitespace() {
                *words.entry(word).or_default() |= 1 << bit;
            }
        }
        words
    });
    const LONGEST: usize = 14;
    if word.len() > LONGEST { 0 } else { WORDS.get(word).copied().unwrap_or(0) }
}

fn plain(word: &str) -> Cow<'_, str> {
    let word = word.trim_matches(|c: char| matches!(c, ',' | '"' | '\'' | '(' | ')' | '*' | '_'));
    let is_small = word.bytes().all(|c| c.is_ascii() && !c.is_ascii_uppercase());
    if is_small { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}

/// Reads the value that a sentence gives after its name: verbs, with words of the sentence before them.
pub(super) fn after(
    text: &str,
    line: &Range<usize>,
    name_end: usize,
    strength: Strength,
) -> Option<SecretSpan> {
    let limit = super::part::next_boundary(text, line.end.min(name_end + REACH));
    let mut at = name_end;
    let (mut is_said, mut is_of) = (false, false);
    let from = super::part::next_boundary(text, line.start.max(name_end.saturating_sub(60)));
    let before = text[from..name_end].to_ascii_lowercase();
    let is_login = before.ends_with("creds") || before.ends_with("credentials") || before.ends_with("cred");
    let is_set = ["set ", "change", "reset", "update", "rotate"].iter().any(|word| before.contains(word));
    for count in 0..14 {
        let rest = text[at..limit].trim_start_matches([' ', '\t', '*']);
        at = limit - rest.len();
        if rest.is_empty() {
            return None;
        }
        // `the password (X)`, `the secret (currently X)`
        if let Some(inner) = rest.strip_prefix('(') {
            is_said = true;
            at = limit - inner.len();
            continue;
        }
        let size = rest.find([' ', '\t']).unwrap_or(rest.len());
        let token = &rest[..size];
        let word = plain(token.trim_end_matches(':'));
        let lists = lists_of(&word);
        let is_verb = lists & VERB != 0 || token == ":" || (word == "to" && is_set);
        if lists & DENIAL != 0 || (word.is_empty() && !is_verb) {
            return None;
        }
        if is_said && !(is_verb || lists & ADVERB != 0) {
            if is_login && let Some(one) = of_pair(text, line, at) {
                return Some(one);
            }
            return candidate(text, line, at, strength);
        }
        if is_login
            && count < 4
            && let Some(one) = of_pair(text, line, at)
        {
            return Some(one);
        }
        let is_end = token.ends_with(['.', ';', '!', '?']) && !is_verb;
        if is_end && !is_said {
            return None;
        }
        is_said |= is_verb || (is_of && token.ends_with(':') && count > 0);
        is_of |=
            matches!(&*word, "for" | "of" | "to" | "on" | "für" | "von" | "de" | "para" | "pour" | "per");
        at += size;
    }
    None
}

/// The secret of a user and a secret with a sign between them: `bob/X`, `bob:X`.
pub(super) fn of_pair(text: &str, line: &Range<usize>, at: usize) -> Option<SecretSpan> {
    let (start, end, _) = quoted::value_at(text, at, Ends::Token)?;
    let value = text.get(start..end.min(line.end))?.trim_end_matches(['.', ',', ';', ')']);
    let sign = value.find(['/', ':'])?;
    let (user, secret) = (&value[..sign], &value[sign + 1..]);
    let is_user = !user.is_empty()
        && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'@'));
    let is_secret = is_user && judge::is_secret(secret, Strength::Password, Setting::Prose, false);
    is_secret.then(|| named_span(start + sign + 1, start + value.len()))
}

/// The value that begins here, if it looks like one in a sentence.
fn candidate(text: &str, line: &Range<usize>, at: usize, strength: Strength) -> Option<SecretSpan> {
    let ends = if strength == Strength::Phrase { Ends::Whole } else { Ends::Token };
    let (start, end, is_quoted) = quoted::value_at(text, at, ends)?;
    let end = end.min(line.end);
    let value = text.get(start..end)?;
    let value = if is_quoted { value } else { value.trim_end_matches(['.', ',', ';', ':', ')', '?']) };
    let is_secret = !has_marker(value) && judge::is_secret(value, strength, Setting::Prose, is_quoted);
    is_secret.then(|| named_span(start, start + value.len()))
}

/// Reads the value that a sentence gives before its name: `use X as the password`.
pub(super) fn before(text: &str, line: &Range<usize>, name: usize, strength: Strength) -> Option<SecretSpan> {
    let from = line.start.max(name.saturating_sub(REACH));
    let from = super::part::next_boundary(text, from);
    let mut rest = text[from..name].trim_end_matches(['"', '\'', '*']);
    let mut is_linked = false;
    for _ in 0..6 {
        let trimmed = rest.trim_end();
        if trimmed.len() == rest.len() {
            return None;
        }
        let begin = trimmed.rfind([' ', '\t', '\n']).map_or(0, |blank| blank + 1);
        let word = plain(&trimmed[begin..]);
        rest = &trimmed[..begin];
        let lists = lists_of(&word);
        if lists & LINK != 0 {
            is_linked = true;
            break;
        }
        if lists & ARTICLE == 0 {
            return None;
        }
    }
    if !is_linked {
        return None;
    }
    let trimmed = rest.trim_end().trim_end_matches([',', ':']);
    let end = from + trimmed.len();
    let quote = trimmed.chars().next_back().filter(|c| matches!(c, '"' | '\'' | '`'));
    let (start, end) = match quote {
        Some(quote) => (from + trimmed[..trimmed.len() - 1].rfind(quote)? + 1, end - 1),
        None => {
            (from + trimmed.rfind([' ', '\t', '(', '"', '\'', '=', ':']).map_or(0, |blank| blank + 1), end)
        }
    };
    let value = text.get(start..end)?;
    // One word before `passphrase` is a verb.
    let strength = if strength == Strength::Phrase { Strength::Password } else { strength };
    let is_secret = !has_marker(value) && judge::is_secret(value, strength, Setting::Prose, quote.is_some());
    is_secret.then(|| named_span(start, end))
}

/// Words before a user and a secret: `log in with bob / X`.
const LOGINS: &[&str] = &[
    "login",
    "log in",
    "log on",
    "logon",
    "logged in",
    "sign in",
    "signin",
    "credential",
    "creds",
    "username",
    "user:",
    "user is",
    "account",
    "access with",
    "zugangsdaten",
    "anmelde",
    "einloggen",
    "identifiants",
    "credenciales",
    "connect as",
    "authenticate as",
    "connect with",
];

/// Finds a user and a secret with a slash between them, after words of a login.
pub(super) fn logins(text: &str, found: &mut Vec<SecretSpan>) {
    for at in memchr::memmem::find_iter(text.as_bytes(), b" / ") {
        let from = super::part::next_boundary(text, at.saturating_sub(80));
        let before = text[from..at].rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
        let is_login = LOGINS.iter().any(|word| before.contains(word));
        let user = before.rsplit(' ').next().unwrap_or_default();
        let is_listed =
            before.strip_suffix(user).is_some_and(|lead| lead.ends_with(": ")) && !user.is_empty();
        if !is_login && !is_listed {
            continue;
        }
        let Some((start, end, is_quoted)) = quoted::value_at(text, at + 3, Ends::Token) else { continue };
        let value = text[start..end].trim_end_matches(['.', ',', ')']);
        let is_chosen = is_login || (value.len() >= 8 && judge::has_all(value));
        if is_chosen && judge::is_secret(value, Strength::Password, Setting::Prose, is_quoted) {
            found.push(named_span(start, start + value.len()));
        }
    }
}
