//! Draws the values that fill a template: secrets in the documented shapes of their vendors, passwords as people and
//! programs make them, and plain fillings such as user names and digests.
//!
//! Never prints a value. Rule: a secret has at least four characters, so that a part of it can be looked for.

use super::words::{FILLINGS, NAMES, SHAPES, VENDORS, WORDS};
use crate::Dice;

/// A value that was drawn for a field of a template.
#[derive(Debug)]
pub(super) struct FieldText {
    pub(super) text: String,
    pub(super) worth: Worth,
}

/// Whether a value must be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// An ordinary part of the text.
    Plain,
    /// Must be redacted.
    Secret,
    /// May be redacted or not, such as the id of an access key.
    Optional,
}

/// Returns one of `all`.
pub(super) fn one<'a, T: ?Sized>(dice: &mut Dice, all: &'a [&'a T]) -> &'a T {
    all[dice.below(all.len() as u64) as usize]
}

/// Draws the value of a field; `None` if no field has this name.
pub(super) fn draw(field: &str, dice: &mut Dice) -> Option<FieldText> {
    let of = |worth, text| Some(FieldText { text, worth });
    if let Some(text) = password(field, dice) {
        return of(Worth::Secret, text);
    }
    if let Some(text) = plain(field, dice) {
        return of(Worth::Plain, text);
    }
    if field == "any" {
        let (_, shape) = VENDORS[dice.below(VENDORS.len() as u64) as usize];
        return of(Worth::Secret, shaped(shape, dice));
    }
    if let Some((_, shape)) = VENDORS.iter().chain(SHAPES.iter()).find(|(name, _)| *name == field) {
        return of(Worth::Secret, shaped(shape, dice));
    }
    if let Some(name) = field.strip_prefix('?') {
        let (_, shape) = FILLINGS.iter().chain(SHAPES.iter()).find(|(known, _)| *known == name)?;
        return of(Worth::Optional, shaped(shape, dice));
    }
    let (_, shape) = FILLINGS.iter().find(|(name, _)| *name == field)?;
    of(Worth::Plain, shaped(shape, dice))
}

/// Draws a secret of the kinds that people and password managers make.
fn password(field: &str, dice: &mut Dice) -> Option<String> {
    Some(match field {
        // Safe without quotes in a shell, in YAML and in an address.
        "pw" => match dice.below(6) {
            0 => shaped("{A8-16}", dice),
            1 => shaped("{A17-40}", dice),
            2 => strong(dice, "!@%^*_+-.~", 10, 24),
            3 => strong(dice, "_-.", 8, 20),
            _ => human(dice),
        },
        // Letters and digits only.
        "alnum" => match dice.below(3) {
            0 => shaped("{A8-14}", dice),
            1 => shaped("{A16-32}", dice),
            _ => human(dice).chars().filter(char::is_ascii_alphanumeric).collect::<String>() + "9x",
        },
        // Needs the quotes and escapes of its syntax.
        "pwq" => match dice.below(3) {
            0 => strong(dice, "\"'\\", 8, 16),
            1 => strong(dice, "!@#$%^&*()<>{}[]|;:,.?/~`\"'\\", 10, 28),
            _ => human(dice) + one(dice, &["\"x", "'s", "\\n0", "#1", "&co", "$$", "<3"]),
        },
        "short" => match dice.below(3) {
            0 => shaped("{A4-7}", dice),
            1 => shaped("{l3-4}{d2-3}", dice),
            _ => shaped("{U1}{l3}{d1-3}", dice),
        },
        "pin" => shaped("{d4-8}", dice),
        "phrase" => {
            let between = one(dice, &[" ", "-", " ", "_", "."]);
            let count = 3 + dice.below(4);
            (0..count).map(|_| one(dice, &WORDS)).collect::<Vec<_>>().join(between)
        }
        "seed12" => recovery(12, dice),
        "seed24" => recovery(24, dice),
        "jwt" => web_token(dice),
        "pem" => lines(&shaped("MII{b400-900}", dice), 64),
        "ssh" => {
            lines(&shaped("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAA{b300-600}", dice), 70)
        }
        "pgp" => lines(&shaped("lQdGB{b400-700}", dice), 64),
        _ => return None,
    })
}

/// Draws the fillings that are more than a shape: names of settings in the spellings of languages, and prose.
fn plain(field: &str, dice: &mut Dice) -> Option<String> {
    let spelling = field.strip_prefix("n_");
    Some(match (field, spelling) {
        (_, Some(spelling)) => spelled(one(dice, &NAMES), spelling),
        ("user", _) => {
            one(dice, &["alice", "bob", "deploy", "svc_report", "admin", "jenkins", "m.rossi", "app"]).into()
        }
        ("host", _) => {
            one(dice, &["db-1.internal", "10.0.4.17", "prod.example.com", "localhost", "mail.acme.io"]).into()
        }
        ("word", _) => one(dice, &WORDS).into(),
        ("date", _) => shaped("2025-0{e1}-1{d1}", dice),
        ("time", _) => shaped("1{d1}:{f1}{d1}:{f1}{d1}", dice),
        ("pub_lines", _) => lines(&shaped("MII{b500-900}", dice), 64),
        ("png", _) => shaped("iVBORw0KGgoAAAANSUhEUgAA{b200-500}", dice),
        ("pdf", _) => shaped("JVBERi0xLjcKJeLjz9MK{b200-500}", dice),
        _ => return None,
    })
}

/// Draws a password with every class of characters, as a password manager does.
fn strong(dice: &mut Dice, signs: &str, min: u64, max: u64) -> String {
    let signs: Vec<char> = signs.chars().collect();
    let length = min + dice.below(max - min + 1);
    let mut text = shaped("{A2}", dice);
    for at in 2..length {
        if at % 4 == 3 && at + 1 < length {
            text.push(signs[dice.below(signs.len() as u64) as usize]);
        } else {
            text += &shaped("{A1}", dice);
        }
    }
    text
}

/// Draws a password as people make them, of a word, digits and a sign.
fn human(dice: &mut Dice) -> String {
    let word = one(dice, &WORDS);
    let mut first = word.chars();
    let capital: String = first.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(first).collect();
    let other = one(dice, &WORDS);
    match dice.below(6) {
        0 => capital + &shaped("{d4}", dice) + one(dice, &["!", "", "_", "!!"]),
        1 => leet(&capital) + &shaped("{d2}{l2}", dice),
        2 => format!("{capital}-{other}-{}", shaped("{d2}", dice)),
        3 => format!("{word}{other}{}", shaped("{d2-4}", dice)),
        4 => format!("{}@{}", leet(&capital), shaped("{d3-4}", dice)),
        _ => format!("{}{}", shaped("{d2-3}", dice), leet(&format!("{word}{capital}"))),
    }
}

fn leet(word: &str) -> String {
    word.chars()
        .map(|c| match c {
            'a' => '4',
            'e' => '3',
            'i' => '1',
            'o' => '0',
            other => other,
        })
        .collect()
}

/// Draws the recovery phrase of a wallet. Its checksum does not hold: only the words are of the published list.
fn recovery(words: u64, dice: &mut Dice) -> String {
    (0..words).map(|_| one(dice, &WORDS)).collect::<Vec<_>>().join(" ")
}

/// Draws a JSON Web Token of RFC 7519.
fn web_token(dice: &mut Dice) -> String {
    let head = one(dice, &[r#"{"alg":"HS256","typ":"JWT"}"#, r#"{"alg":"RS256","kid":"k1","typ":"JWT"}"#]);
    let body = shaped(r#"{"sub":"@d8","name":"@l6","iat":17@d8,"exp":17@d8}"#, dice);
    let url = |text: &str| base64(text.as_bytes()).replace('+', "-").replace('/', "_").replace('=', "");
    format!("{}.{}.{}", url(head), url(&body), shaped("{w43}", dice))
}

/// Breaks a text into lines of a width.
pub(super) fn lines(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / width + 1);
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % width == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    out
}

/// Spells a name of words apart by spaces as a language does.
fn spelled(name: &str, spelling: &str) -> String {
    let capital = |word: &str| {
        let mut rest = word.chars();
        rest.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(rest).collect::<String>()
    };
    let words: Vec<&str> = name.split(' ').collect();
    match spelling {
        "snake" => words.join("_"),
        "kebab" => words.join("-"),
        "dot" => words.join("."),
        "upper" => words.join("_").to_ascii_uppercase(),
        "pascal" => words.iter().map(|word| capital(word)).collect(),
        "camel" => {
            let all: String = words.iter().map(|word| capital(word)).collect();
            let mut rest = all.chars();
            rest.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(rest).collect()
        }
        "title" => words.iter().map(|word| capital(word)).collect::<Vec<_>>().join(" "),
        _ => name.to_owned(),
    }
}

/// Fills a shape: `{A36}` is 36 letters or digits, `{d3-5}` three to five digits. Braces that hold no shape are text,
/// and `@d8` is the same as `{d8}`.
pub(super) fn shaped(shape: &str, dice: &mut Dice) -> String {
    let mut out = String::new();
    let mut rest = shape;
    while let Some(at) = rest.find(['{', '@']) {
        out += &rest[..at];
        let braced = rest[at..].starts_with('{');
        let inner = &rest[at + 1..];
        let end = if braced {
            inner.find('}').unwrap_or(0)
        } else {
            1 + inner.bytes().skip(1).take_while(u8::is_ascii_digit).count()
        };
        match inner.get(..end).and_then(|code| alphabet(code, dice)) {
            Some(text) => {
                out += &text;
                rest = &inner[end + usize::from(braced)..];
            }
            None => {
                out += &rest[at..=at];
                rest = inner;
            }
        }
    }
    out + rest
}

/// Draws the characters of a code such as `A36`; `None` if it is no code.
fn alphabet(code: &str, dice: &mut Dice) -> Option<String> {
    let (letter, count) = code.split_at_checked(1)?;
    let all: &[u8] = match letter {
        "A" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "a" => b"abcdefghijklmnopqrstuvwxyz0123456789",
        "l" => b"abcdefghijklmnopqrstuvwxyz",
        "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "u" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "k" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "d" => b"0123456789",
        "e" => b"123456789",
        "f" => b"012345",
        "h" => b"0123456789abcdef",
        "H" => b"0123456789ABCDEF",
        "w" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "c" => b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        _ => return None,
    };
    let (min, max) = count.split_once('-').unwrap_or((count, count));
    let (min, max) = (min.parse::<u64>().ok()?, max.parse::<u64>().ok()?);
    let length = min + dice.below(max.checked_sub(min)? + 1);
    Some((0..length).map(|_| char::from(all[dice.below(all.len() as u64) as usize])).collect())
}

/// Encodes bytes as base64 of RFC 4648 with its filling.
pub(super) fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            match at <= three.len() {
                true => out.push(char::from(SIGNS[(bits >> (18 - 6 * at) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
}
