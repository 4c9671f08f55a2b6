//! Judges whether the value beside a name is a secret, or a reference, a word, an expression of a program, an example.
//!
//! Reads one value at a time, and never where it comes from: a [`Setting`] carries what its syntax shows.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::names::{self, Strength};
use super::part::has_marker;

/// The syntax in which a value follows its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// A member of a data format, a variable, a header, a flag, a cell.
    Data,
    /// An assignment that may be one of a program: `name = value`.
    Code,
    /// A sentence.
    Prose,
    /// A value right after its name: `name value`.
    Bare,
    /// A cell of a table.
    Cell,
}

/// Words that stand for a value: types, states, parts of a sentence.
const PLACEHOLDERS: &str = "null none nil true false undefined string str text int integer number bool boolean bytes optional \
    required any object array password passwd pwd pass passphrase secret token key hidden masked redacted removed omitted example \
    changeme change_me todo tbd n/a na unset empty default unknown missing yes no on off ok basic bearer digest see invalid valid \
    expired incorrect wrong not is was the a an your from env environment vault keychain keyring stdin prompt and or for with to in \
    of self this that value values varchar char uuid float dict list function return new set get must should cannot can will has \
    have been are be provided configured found request response header headers error rotation rotated expires type manager username \
    user field flag option argument it its my our if when then else as by at on but only never always also instead may might \
    enabled disabled active inactive revoked accepted rejected denied granted updated changed created deleted generated saved stored \
    loaded reset success successful failed failure ok done passed skipped pending correct match matches mismatch matched matching \
    authentication authorization authenticated authorized unauthorized login auth credentials credential email e-mail name id code \
    here below above ending starting beginning used using use stored encrypted encoded hashed plaintext plain sensitive secure \
    interactive manual automatic nullable readonly literal enum struct map hashmap vec option some ok err void byte rune interface \
    any unknown never symbol bigint securestring secretstr secretstring foo bar baz test testing placeholder none. write read admin_password \
    ask confirm enter type typed input output auto random generate forgotten lost protected ntlm kerberos oauth oauth2 jwt apikey \
    negotiate utf-8 utf8 ascii latin-1 iso-8859-1 hex base64 api-key api_key hmac password_hash blank";

/// Beginnings of a reference to the place that has the value.
const REFERENCES: &[&str] = &[
    "env.",
    "env:",
    "$env:",
    "process.env",
    "import.meta",
    "os.environ",
    "os.getenv",
    "getenv",
    "std::env",
    "secrets.",
    "var.",
    "local.",
    "data.",
    "module.",
    "config.",
    "settings.",
    "self.",
    "self->",
    "this.",
    "this->",
    "args.",
    "options.",
    "opts.",
    "params.",
    "request.",
    "req.",
    "ctx.",
    "vault:",
    "vault://",
    "secret://",
    "op://",
    "ref:",
    "ref+",
    "arn:",
    "!ref",
    "!sub",
    "!getatt",
    "!vault",
    "!secret",
    "enc[",
    "file:",
    "file://",
    "http://",
    "https://",
    "/run/secrets/",
    "/var/run/secrets/",
    "@microsoft.keyvault",
    "keyvault:",
    "gsm:",
    "ssm:",
    "awssm:",
    "sops:",
    "keychain:",
    "{cipher}",
    "ag:",
    "age1",
    "cmd:",
];

/// Parts of a value that was made up for an example.
const EXAMPLES: &[&str] = &[
    "example",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "your-",
    "your_",
    "yourpassword",
    "my-secret-here",
    "redacted",
    "dummy",
    "sample",
    "replace_me",
    "replace-me",
    "replaceme",
    "insert_",
    "insert-",
    "...",
    "\u{2026}",
    "***",
    "\u{2022}\u{2022}",
    "xxxx",
];

static IS_EXAMPLE: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::new(EXAMPLES).expect("some short texts"));

static IS_PLACEHOLDER: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| PLACEHOLDERS.split_whitespace().collect());

/// Whether a value is written in place of a secret: an example, a variable, a type, a reference.
pub(super) fn is_placeholder(value: &str) -> bool {
    let trimmed = value.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ' ' | '\\'));
    if trimmed.is_empty() {
        return true;
    }
    let lower = trimmed.to_ascii_lowercase();
    IS_PLACEHOLDER.contains(&*lower)
        || is_variable(trimmed)
        || is_template(trimmed)
        || (is_call(trimmed) && trimmed.ends_with(')'))
        || is_format(trimmed)
        || REFERENCES
            .iter()
            .any(|start| start.as_bytes()[0] == lower.as_bytes()[0] && lower.starts_with(start))
        || (IS_EXAMPLE.is_match(&*lower)
            && EXAMPLES
                .iter()
                .any(|part| lower.find(part).is_some_and(|at| !is_shield(trimmed, at, part.len()))))
        || is_name_of_secret(&lower)
        || is_type(&lower)
        || is_filler(trimmed)
}

/// Whether the rest of a value with a word of examples in it was chosen all the same: `changeme-Kz81!mm`.
fn is_shield(value: &str, at: usize, length: usize) -> bool {
    let rest = |text: &str| text.trim_matches(['-', '_', '.', '<', '>']).to_owned();
    let parts = [rest(&value[..at]), rest(&value[at + length..])];
    parts.iter().any(|part| part.len() >= 6 && look(part) == Look::Chosen && has_all(part))
}

/// Whether a value is a type with its size: `varchar255`, `uint64`.
fn is_type(lower: &str) -> bool {
    let name = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(
        name,
        "varchar" | "nvarchar" | "char" | "int" | "uint" | "float" | "bytes" | "string" | "sha" | "utf"
    )
}

/// Whether a value is drawn by chance: no name, no date, no digest.
pub(super) fn is_drawn(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|c| is(&c));
    looks_secret(value)
        && is_mixed(value)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains([':', '/', ' '])
        && !is_public_digest(value)
        && !is_placeholder(value)
        && !value.starts_with(|c: char| c.is_ascii_digit() && value.as_bytes().get(4) == Some(&b'-'))
}

/// Whether a value is one or two characters repeated: `xxxx`, `----`, `0000`.
fn is_filler(value: &str) -> bool {
    let mut seen = value.bytes();
    let Some(first) = seen.next() else { return true };
    let Some(second) = seen.find(|c| *c != first) else { return true };
    value.bytes().all(|c| c == first || c == second)
}

/// Whether a value is a variable of a shell: `$TOKEN`, `$(token)`, `$env:TOKEN`, `%TOKEN%`, `@token`.
fn is_variable(value: &str) -> bool {
    let is_name = |c: u8| {
        c.is_ascii_alphanumeric()
            || matches!(c, b'_' | b'{' | b'}' | b'(' | b')' | b'.' | b'-' | b':' | b'[' | b']' | b'\'' | b'"')
    };
    let is_begin = |c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '(' | '_');
    let is_word = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    let of_shell = value.strip_prefix('$').is_some_and(|rest| {
        // `$ecret99` is no name of a variable that a shell would have: those are of one case.
        let of_one_case = !rest.bytes().any(|c| c.is_ascii_digit()) || rest.bytes().all(is_word);
        rest.starts_with(is_begin)
            && rest.bytes().all(is_name)
            && (of_one_case || rest.starts_with(['{', '(']) || rest.contains("->"))
    });
    of_shell || (value.len() > 2 && value.starts_with("$("))
}

/// Whether a value is a place in a template: `%TOKEN%`, `<token>`, `{token}`, `${token}`.
fn is_template(value: &str) -> bool {
    (value.len() > 1 && value.starts_with('%') && value.ends_with('%'))
        || (value.starts_with('<') && (value.ends_with('>') || value[1..].starts_with(char::is_alphabetic)))
        || (value.starts_with('{') && value.ends_with('}'))
        || (value.starts_with('[') && (value.ends_with(']') || value.len() < 3))
        || (value.starts_with('(') && value.ends_with(')'))
        || matches!(value, "{" | "[" | "(" | "|" | ">" | "|-" | ">-" | "\\")
        || value.contains("${")
        || value.contains("{{")
        || value.contains("<%")
}

/// Whether a value is a place of a format: `%s`, `{0}`, `%(name)s`, `:name`.
fn is_format(value: &str) -> bool {
    let places = value.matches('%').count();
    let others = value.bytes().filter(u8::is_ascii_alphanumeric).count();
    (places > 0 && others <= places + 1)
        || matches!(value, "%s" | "%d" | "%v" | "%q" | "%r" | "{}" | "{:?}" | "?" | "%@" | "-" | "--" | "%")
        || (value.starts_with("%(") && value.len() > 3)
        || (value.starts_with('{')
            && value.ends_with('}')
            && value[1..value.len() - 1].bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'))
}

/// Whether a value is a call of a function: `token()`, `f(x`.
fn is_call(value: &str) -> bool {
    let Some(open) = value.find('(') else { return false };
    let callee = &value[..open];
    let is_path =
        |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b':' | b'<' | b'>' | b'!' | b'&');
    let is_begin = callee.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '&'));
    let is_end = value.ends_with([')', '(', ',', ';']) || !value.contains(')');
    is_begin && is_end && callee.len() >= 2 && callee.bytes().all(is_path) && !has_odd_case(callee)
}

/// Whether letters and digits of an identifier are mixed as no person writes one.
fn has_odd_case(name: &str) -> bool {
    is_mixed(name) && name.bytes().any(|c| c.is_ascii_digit())
}

/// Whether a value is words that name a secret: `new_password`, `your-token-here`, `db-credentials`.
fn is_name_of_secret(lower: &str) -> bool {
    const SECRETS: [&str; 16] = [
        "password",
        "secret",
        "secrets",
        "token",
        "tokens",
        "key",
        "keys",
        "passwd",
        "credential",
        "credentials",
        "creds",
        "cred",
        "auth",
        "cert",
        "tls",
        "apikey",
    ];
    let mut parts = 0;
    let mut is_secret = false;
    for part in lower.split(['_', '-', '.', '/', ':']) {
        let is_number = part.len() <= 2 && part.bytes().all(|c| c.is_ascii_digit());
        let is_version = part.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
        if !(is_number || is_version || part.bytes().all(|c| c.is_ascii_lowercase())) {
            return false;
        }
        parts += 1;
        is_secret |= SECRETS.contains(&part);
    }
    parts > 1 && is_secret
}

/// The look of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Digits alone.
    Digits,
    /// Letters alone, of one case or with a capital: `summer`.
    Word,
    /// Words that are joined: `db-credentials`, `config.host`, `userName`, `/etc/key.pem`, `node-18`.
    Name,
    /// Several words with blanks.
    Words,
    /// A person's password, or chance.
    Chosen,
}

fn look(value: &str) -> Look {
    // Signs of the sentence around a word.
    let bare = value
        .trim_end_matches(['?', '!', ',', ')', ';', '.', ':', '"', '\'', '_'])
        .trim_start_matches(['(', '_']);
    let value = if !bare.is_empty() && bare.bytes().all(|c| c.is_ascii_alphabetic()) { bare } else { value };
    if value.contains(char::is_whitespace) {
        return Look::Words;
    }
    if value.bytes().all(|c| c.is_ascii_digit()) {
        return Look::Digits;
    }
    if !value.is_ascii() {
        let is_word = value.chars().all(char::is_alphabetic);
        return if is_word { Look::Word } else { Look::Chosen };
    }
    if value.bytes().all(|c| c.is_ascii_alphabetic()) {
        let uppers = value.bytes().filter(u8::is_ascii_uppercase).count();
        let is_plain =
            uppers == 0 || uppers == value.len() || (uppers == 1 && value.as_bytes()[0].is_ascii_uppercase());
        return match (is_plain, is_scrambled(value)) {
            (_, true) => Look::Chosen,
            (true, false) => Look::Word,
            (false, false) => Look::Name,
        };
    }
    if is_joined(value) { Look::Name } else { Look::Chosen }
}

/// Whether letters are in an order that no word has: four and more consonants at once, or cases that change too often.
fn is_scrambled(value: &str) -> bool {
    let is_vowel = |c: u8| matches!(c.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let bytes = value.as_bytes();
    let turns =
        bytes.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    let uppers = bytes.iter().filter(|c| c.is_ascii_uppercase()).count();
    let is_one_case = uppers == 0 || uppers == bytes.len();
    let vowels = bytes.iter().filter(|c| is_vowel(**c)).count();
    let run = bytes.split(|c| is_vowel(*c)).map(<[u8]>::len).max().unwrap_or(0);
    let parts = names::words(value);
    let is_odd = |part: &String| part.len() == 1 || !part.bytes().any(is_vowel);
    let is_unnatural =
        !is_one_case && bytes.len() >= 8 && parts.len() >= 3 && parts.iter().any(is_odd) && value.is_ascii();
    let is_rough = run >= 5 && bytes.len() >= 8 && vowels * 4 < bytes.len();
    is_unnatural
        || (bytes.len() >= 8 && !is_one_case && turns * 4 >= bytes.len())
        || is_rough
        || (run >= 6 && !is_one_case && bytes.len() >= 8)
}

/// Whether a value is words, with signs between them: an identifier, a path, a version, the name of a thing.
fn is_joined(value: &str) -> bool {
    let mut words = 0;
    let mut parts = 0;
    let mut numbers = 0;
    let mut numbered = 0;
    for part in value.split(|c: char| {
        c.is_ascii_punctuation() && !matches!(c, '$' | '%' | '^' | '"' | '\'' | '`' | '{' | '}')
    }) {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        if !letters.bytes().all(|c| c.is_ascii_alphabetic()) || digits > 4 {
            return false;
        }
        if letters.len() >= 3 && is_scrambled(letters) && letters.len() >= 6 {
            return false;
        }
        parts += usize::from(!part.is_empty());
        numbered += usize::from(digits > 1 && !letters.is_empty());
        words += usize::from(letters.len() >= 3);
        numbers += usize::from(digits > 2 || (digits > 0 && letters.is_empty()));
    }
    // `Qq81-mmq99`: a name has one number.
    if numbered > 1 && has_all(value) {
        return false;
    }
    // `kSk.gAY.X`: no words.
    let parts_of_case = names::words(value);
    let letters: usize = parts_of_case.iter().map(String::len).sum();
    if parts_of_case.len() >= 4 && letters * 10 < parts_of_case.len() * 25 {
        return false;
    }
    if words >= 2 && numbers > 0 && parts == words + numbers && is_capitalized_phrase(value) {
        return false;
    }
    // A sign that no name has makes a password of it.
    let odd = value.bytes().filter(|c| matches!(c, b'!' | b'#' | b'+' | b'=' | b'&' | b'?' | b'*')).count();
    let is_several = parts > 1 || value.starts_with(['/', '.', '~']);
    words > 0 && is_several && odd == 0 && numbers <= words
}

/// Whether words with capitals end in a number: `Cradle-coral-38`.
fn is_capitalized_phrase(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|c| is(&c));
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    value.starts_with(|c: char| c.is_ascii_uppercase())
        && has(u8::is_ascii_lowercase)
        && digits >= 2
        && value.ends_with(|c: char| c.is_ascii_digit())
        && !value.contains(['/', ':', '('])
}

/// Whether the value beside a name of this strength is a secret.
pub(super) fn is_secret(value: &str, strength: Strength, setting: Setting, is_quoted: bool) -> bool {
    if strength == Strength::Phrase {
        // `a mnemonic carrying X`: one word of a sentence.
        let is_sentence = matches!(setting, Setting::Bare | Setting::Prose) && !is_quoted;
        let is_word = !value.contains(' ') && look(value) != Look::Chosen;
        return is_phrase(value, is_quoted) && !(is_sentence && is_word);
    }
    // `names["x"]`, `f('x'`: an expression.
    let is_part = || {
        let signs = ["[\"", "['", "(\"", "('", "='", "=\"", "function(", "){", "=>", ");"];
        value.contains(['[', '(', '=', ')']) && signs.iter().any(|part| value.contains(part))
    };
    // `r.token=i;if(!r.token)`: a statement ends, and the next one begins.
    let is_statement = || {
        value.split_once(';').is_some_and(|(before, rest)| {
            !rest.is_empty() && (before.len() < 3 || is_expression(before) || is_placeholder(before))
        })
    };
    if !is_quoted && (is_statement() || is_part()) {
        return false;
    }
    if value.len() < 3 || is_numbers(value) || (!is_quoted && value.contains("::")) {
        return false;
    }
    if is_placeholder(value) || is_path(value) || (!is_quoted && is_call(value)) {
        return false;
    }
    let look = look(value);
    match strength {
        Strength::Phrase => true,
        Strength::Password => is_password(value, look, setting, is_quoted),
        Strength::Strong => is_strong(value, look, setting, is_quoted),
        Strength::Code => is_code(value, look, setting, is_quoted),
        Strength::Weak => {
            let is_shown = match setting {
                Setting::Code if !is_quoted => look == Look::Chosen && is_mixed(value) && value.len() >= 12,
                Setting::Bare => value.len() >= 10 && is_mixed(value),
                Setting::Data | Setting::Code | Setting::Prose | Setting::Cell => {
                    look != Look::Name && look != Look::Word
                }
            };
            is_shown && looks_secret(value) && !is_public_digest(value)
        }
    }
}

fn is_password(value: &str, look: Look, setting: Setting, is_quoted: bool) -> bool {
    let is_identifier = value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let has_digit = value.bytes().any(|c| c.is_ascii_digit());
    match (setting, look) {
        (Setting::Cell, Look::Chosen | Look::Digits) => value.len() >= 4,
        (Setting::Cell, Look::Name) => has_digit && value.len() >= 8 && !is_label(value),
        (Setting::Cell, Look::Word) => is_quoted && value.len() >= 4 && !is_label(value),
        (Setting::Cell, Look::Words) => false,
        (_, Look::Words) => is_quoted && setting != Setting::Bare && is_spoken_secret(value),
        (Setting::Data, Look::Digits) => value.len() >= 4,
        (Setting::Data, Look::Chosen) => value.len() >= 4,
        (Setting::Data, Look::Word) if is_quoted => value.len() >= 4 && !is_label(value),
        (Setting::Data, Look::Word) => {
            value.len() >= 4 && !value.starts_with(char::is_uppercase) && !is_label(value)
        }
        (Setting::Data, Look::Name) if is_quoted => value.len() >= 4 && !is_label(value),
        (Setting::Data, Look::Name) => value.len() >= 5 && !is_label(value) && !is_expression(value),
        (Setting::Code, _) if is_quoted => value.len() >= 4 && !is_label(value),
        (Setting::Code, Look::Digits) => value.len() >= 4,
        (Setting::Code, Look::Chosen) if is_identifier && is_constant(value) => false,
        (Setting::Code, Look::Chosen) if is_identifier => {
            (is_mixed(value) && has_digit)
                || (value.len() >= 6 && value.bytes().filter(u8::is_ascii_digit).count() >= 2)
        }
        (Setting::Code, Look::Chosen) => value.len() >= 6 && !is_expression(value),
        (Setting::Code, Look::Word | Look::Name) => false,
        (Setting::Prose, Look::Chosen) => value.len() >= 5,
        (Setting::Prose, Look::Digits) => value.len() >= 6,
        (Setting::Prose, Look::Name)
            if has_digit && value.len() >= 8 && !value.contains(['/', '.', ':', '(']) =>
        {
            true
        }
        (Setting::Prose, Look::Name)
            if value.len() >= 6
                && has_digit
                && value.bytes().any(|c| c.is_ascii_uppercase())
                && value.bytes().any(|c| c.is_ascii_lowercase())
                && !value.contains(['/', ':', '(']) =>
        {
            true
        }
        (Setting::Prose, Look::Word | Look::Name) => is_quoted && value.len() >= 4 && !is_label(value),
        (Setting::Bare, Look::Chosen) if is_quoted => {
            value.len() >= 4 && !value.bytes().all(|c| c.is_ascii_alphabetic())
        }
        (Setting::Bare, Look::Chosen) => {
            (value.len() >= 10 && is_mixed(value))
                || (value.len() >= 8 && !is_expression(value) && has_all(value))
        }
        (Setting::Bare, Look::Word) => is_quoted && value.len() >= 6 && !is_label(value),
        (Setting::Bare, Look::Name | Look::Digits) => false,
    }
}

fn is_strong(value: &str, look: Look, setting: Setting, is_quoted: bool) -> bool {
    let is_identifier = value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    match (setting, look) {
        (Setting::Data, Look::Words) => {
            is_quoted
                && value.len() >= 16
                && is_spoken_secret(value)
                && !value.starts_with(char::is_uppercase)
        }
        (_, Look::Words) => false,
        (_, Look::Digits) => is_quoted && value.len() >= 6 || setting == Setting::Data && value.len() >= 4,
        (Setting::Cell, Look::Chosen) => value.len() >= 6,
        (Setting::Data, Look::Chosen) => value.len() >= 6,
        (Setting::Data | Setting::Code, Look::Word) => {
            is_quoted && value.len() >= 10 && !is_label(value) && !value.starts_with(char::is_uppercase)
        }
        (_, Look::Word | Look::Name) => false,
        (Setting::Code, Look::Chosen) if is_quoted => value.len() >= 6,
        (Setting::Code, Look::Chosen) if is_identifier && is_constant(value) => false,
        (Setting::Code, Look::Chosen) if is_identifier => {
            (is_mixed(value) && value.len() >= 10 && value.bytes().any(|c| c.is_ascii_digit()))
                || (value.len() >= 8 && inner_digits(value) >= 3)
        }
        (Setting::Code, Look::Chosen) => value.len() >= 10 && !is_expression(value) && has_all(value),
        (Setting::Prose, Look::Chosen) => value.len() >= 8,
        (Setting::Bare, Look::Chosen) => {
            value.len() >= 8 && is_mixed(value) && (is_quoted || (value.len() >= 10 && !is_resource(value)))
        }
    }
}

fn is_code(value: &str, look: Look, setting: Setting, is_quoted: bool) -> bool {
    match look {
        Look::Digits => (4..=10).contains(&value.len()) && (setting != Setting::Bare || value.len() >= 6),
        Look::Chosen => {
            let is_plain = value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
            let has_digit = value.bytes().any(|c| c.is_ascii_digit());
            let is_key = looks_secret(value) && is_mixed(value);
            matches!(setting, Setting::Data | Setting::Prose)
                && value.len() >= 5
                && has_digit
                && (is_plain || is_key)
                || (setting == Setting::Code && is_quoted && is_key)
        }
        // `482 913`, as apps show it.
        Look::Words => {
            is_quoted && value.len() <= 11 && value.bytes().all(|c| c.is_ascii_digit() || c == b' ')
        }
        Look::Word | Look::Name => false,
    }
}

/// Whether a value is the name of a resource with a suffix: `app-db-7f9c`.
fn is_resource(value: &str) -> bool {
    let is_part = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let first = value.split('-').next().unwrap_or_default();
    value.contains('-')
        && value.bytes().all(is_part)
        && first.len() >= 3
        && first.bytes().all(|c| c.is_ascii_lowercase())
        && !is_scrambled(first)
}

/// Whether a value is the name of a constant: `DOT11_PASSWORD_ID`.
fn is_constant(value: &str) -> bool {
    value.contains('_') && !value.bytes().any(|c| c.is_ascii_lowercase())
}

/// How many digits are between letters: `F3nc353sn`, and not `server2`.
fn inner_digits(value: &str) -> usize {
    let trimmed = value.trim_end_matches(|c: char| c.is_ascii_digit());
    trimmed.bytes().filter(u8::is_ascii_digit).count()
}

/// Whether a value has letters of both cases and a digit, or a digit and a sign.
pub(super) fn has_all(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|c| is(&c));
    let has_sign = has(|c| {
        c.is_ascii_punctuation() && !matches!(c, b'-' | b'_' | b'.' | b'/' | b':' | b'(' | b')' | b',')
    });
    has(u8::is_ascii_digit)
        && ((has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
            || (has_sign && has(u8::is_ascii_alphabetic)))
}

/// Whether a value without quotes is an expression of a program: a member, an index, an operation.
fn is_expression(value: &str) -> bool {
    let is_part = |part: &str| {
        let part = part.trim_end_matches(['?', '!', ']', ')']);
        part.is_empty()
            || (part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') && !has_odd_case(part))
    };
    let has_sign = value.contains(['.', '[', '(', '|', '&', '+', '*', '<', '>', ':', '?', '=']);
    let is_begin = value.starts_with(|c: char| {
        c.is_ascii_alphabetic() || matches!(c, '_' | '&' | '*' | '!' | '(' | '$' | '@')
    });
    has_sign
        && is_begin
        && value
            .split([
                '.', '[', '(', ':', '&', '*', '|', '+', '<', '>', '?', '=', '$', '@', '-', '\'', '"', '!',
            ])
            .all(is_part)
}

/// Whether a text beside a name labels its field: words that name a secret themselves. A person's password has digits.
fn is_label(value: &str) -> bool {
    !value.bytes().any(|c| c.is_ascii_digit()) && names::strength(value).is_some()
}

/// Whether several words in quotes are a secret, and no sentence: `correct horse battery`, and not `must not be empty`.
fn is_spoken_secret(value: &str) -> bool {
    const OF_SENTENCE: &str = "must should cannot invalid required missing not please enter your the is are was has have for with \
        and or when if to of in on must be can will no this that from forgot reset change choose type confirm new current old wrong \
        incorrect at least use";
    static SPOKEN: LazyLock<BTreeSet<&'static str>> =
        LazyLock::new(|| OF_SENTENCE.split_whitespace().collect());
    let words: Vec<&str> = value.split_whitespace().collect();
    words.len() <= 8
        && !value.ends_with(['.', '!', '?', ':'])
        && !words.iter().any(|word| SPOKEN.contains(&*word.to_ascii_lowercase()) || is_label(word))
        && !value.contains(['(', '{', '='])
}

/// Whether the value beside a name such as `passphrase` is one: words, or a chosen value.
fn is_phrase(value: &str, is_quoted: bool) -> bool {
    let words = value.split_whitespace().count();
    match words {
        0 => false,
        1 => {
            value.len() >= 4
                && !is_placeholder(value)
                && !is_path(value)
                && (is_quoted || !is_expression(value))
                && !is_label(value)
        }
        _ => {
            let lower = value.trim_matches(['"', '\'', '<', '>']).to_ascii_lowercase();
            let is_marked = value.starts_with(['<', '$', '{', '(', '[']) || has_marker(&lower);
            !is_marked && (words >= 9 && is_wordlist(value) || is_spoken_secret(value))
        }
    }
}

/// Whether a value is lower-case words alone, as a recovery phrase is.
fn is_wordlist(value: &str) -> bool {
    value.split_whitespace().all(|word| {
        let word = word.trim_matches([',', '"', '\'']);
        (3..=8).contains(&word.len()) && word.bytes().all(|c| c.is_ascii_lowercase())
    })
}

/// Whether a value is a version, a date, a time or an address of digits.
fn is_numbers(value: &str) -> bool {
    let bare = value.strip_prefix('v').unwrap_or(value);
    let signs = bare.bytes().filter(|c| matches!(c, b'.' | b':' | b'-' | b'/')).count();
    signs >= 2 && bare.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b':' | b'-' | b'/'))
}

/// Whether a value is a path in a file system, and no base64 that begins with a slash.
pub(super) fn is_path(value: &str) -> bool {
    let is_drive = value.len() > 3
        && value.as_bytes()[0].is_ascii_alphabetic()
        && (value[1..].starts_with(":\\") || value[1..].starts_with(":/"));
    let is_rooted = value.starts_with("./")
        || value.starts_with("../")
        || value.starts_with("~/")
        || value.starts_with('/');
    is_drive
        || (is_rooted && !(value.len() >= 16 && is_mixed(value) && !value.contains(['.', '~', '-', '_'])))
}

/// Whether a value looks like a secret by itself: long enough, and chosen by no person, or of letters, digits and signs.
pub(super) fn looks_secret(value: &str) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < 8 || value.contains(char::is_whitespace) {
        return false;
    }
    let digits = bytes.iter().filter(|c| c.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|c| c.is_ascii_alphabetic()).count();
    let uppers = bytes.iter().filter(|c| c.is_ascii_uppercase()).count();
    let signs = bytes.len() - digits - letters;
    let is_path = value.starts_with(['/', '.', '~']) || value.contains("://");
    let is_word = digits == 0 && (uppers <= 1 || uppers == letters);
    !is_path
        && letters > 0
        && (is_mixed(value)
            || (!is_word && (digits > 0 || signs > 0 || bytes.len() >= 16))
            || is_scrambled(value))
}

/// Whether letters and digits of a value change so often that no person wrote it as a word: `aku2R74fQYC4kv` and not `getAuthToken2`.
pub(super) fn is_mixed(value: &str) -> bool {
    let class = |c: u8| match c {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = value.as_bytes().windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    value.len() >= 8 && changes >= 3 && changes * 3 >= value.len()
}

/// Whether a piece of a token is drawn by chance, and no word, number or date.
pub(crate) fn is_drawn_part(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|c| is(&c));
    has(u8::is_ascii_alphabetic)
        && has(u8::is_ascii_digit)
        && (is_mixed(part) || (part.len() < 8 && has_all(part) && inner_digits(part) > 0))
}

/// Ids and digests that name something and open nothing.
pub(super) fn is_public_digest(value: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|c| c.is_ascii_hexdigit());
    let groups: Vec<&str> = value.split('-').collect();
    let is_uuid = groups.len() == 5
        && groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| is_hex(group));
    is_uuid
        || value.starts_with("sha256:")
        || value.starts_with("sha512:")
        || value.starts_with("sha1:")
        || value.starts_with("md5:")
}

/// Whether a value after a scheme such as `Bearer` is a secret: anything but a word and a placeholder.
pub(super) fn is_after_scheme(value: &str) -> bool {
    let look = look(value);
    // `Digest username="x"`: pairs, each with its own name.
    if value.contains("=\"") {
        return false;
    }
    !is_placeholder(value) && matches!(look, Look::Chosen | Look::Digits) && value.len() >= 4
        || (matches!(look, Look::Word | Look::Name) && value.len() >= 24 && !is_placeholder(value))
}

/// Whether a short line ends a token of several lines: no word.
pub(super) fn is_tail(piece: &str) -> bool {
    let bare = piece.trim_end_matches('=');
    bare.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/')) && look(bare) != Look::Word
}

/// Whether a line continues a token: no word, no name, no number.
pub(super) fn is_piece(piece: &str) -> bool {
    let bare = piece.trim_end_matches('=');
    let is_number = bare.len() < 6 && bare.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b'-'));
    let look = look(bare);
    // `---` and `===` draw a line.
    bare.bytes().any(|c| c.is_ascii_alphanumeric())
        && !is_number
        && match look {
            Look::Word => false,
            Look::Name => bare.bytes().all(|c| c.is_ascii_alphanumeric()) && is_scrambled(bare),
            Look::Chosen | Look::Digits => true,
            Look::Words => false,
        }
}
