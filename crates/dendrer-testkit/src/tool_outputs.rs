//! Texts as forty tools print them, with secrets in them and with what only looks like a secret.
//!
//! [`secret_cases`] draws texts whose secrets are known to the byte, [`harmless_cases`] texts of which nothing may be
//! redacted. Both follow from their seed alone. Written from the published formats of the tools, and from no rule of
//! the redactor: never import one here, or a score measured on these texts proves nothing.
//!
//! A template is a piece of a `.txt` file of this folder: a line `%%% tool`, and the text up to the next one. Layers
//! after a colon encode or frame the whole text, the innermost first: `%%% docker: json tool_message`. Rule: the file
//! is the class.

mod draw;
mod hostile;
mod markup;
mod words;

use std::ops::Range;

pub use self::hostile::{HOSTILE_KINDS, HostileKind};

use self::draw::one;
use self::markup::{Marked, Stain};
use crate::Dice;

/// How a text gives its secret away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextClass {
    /// A token in the shape that its vendor documents, anywhere.
    Vendor,
    /// A value after a name that announces it, in any syntax.
    Named,
    /// A value that is encoded, nested or broken into lines.
    Disguised,
    /// A value in a sentence of a person.
    Prose,
    /// No secret at all: a look-alike.
    Harmless,
}

impl TextClass {
    /// Every class that has secrets.
    pub const SECRET: [Self; 4] = [Self::Vendor, Self::Named, Self::Disguised, Self::Prose];

    /// Returns the name of the class.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Named => "named",
            Self::Disguised => "disguised",
            Self::Prose => "prose",
            Self::Harmless => "harmless",
        }
    }
}

/// A text of a tool.
#[derive(Debug, Clone)]
pub struct ToolText {
    /// The text.
    pub text: String,
    /// Byte ranges of each secret, ascending: more than one where line breaks of the syntax divide it.
    pub secrets: Vec<Vec<Range<usize>>>,
    /// Byte ranges that may be redacted or not: the id of a key, the breaks in a secret, the rest of an encoded text.
    pub optional: Vec<Range<usize>>,
    /// The class of the template.
    pub class: TextClass,
    /// The tool that prints such a text.
    pub tool: &'static str,
    /// Class, tool and number of the template, and the layers that were drawn.
    pub name: String,
}

/// A template of one file.
#[derive(Debug, Clone, Copy)]
struct ToolTemplate {
    class: TextClass,
    tool: &'static str,
    layers: &'static str,
    text: &'static str,
    number: usize,
}

const FILES: [(TextClass, &str); 5] = [
    (TextClass::Vendor, include_str!("tool_outputs/vendor.txt")),
    (TextClass::Named, include_str!("tool_outputs/named.txt")),
    (TextClass::Disguised, include_str!("tool_outputs/disguised.txt")),
    (TextClass::Prose, include_str!("tool_outputs/prose.txt")),
    (TextClass::Harmless, include_str!("tool_outputs/harmless.txt")),
];

/// Frames that show a text line by line and encode nothing.
const FRAMES: &[&str] = &[
    "log",
    "log_iso",
    "log_actions",
    "compose_log",
    "cat_n",
    "arrow_n",
    "grep_n",
    "quote",
    "diff",
    "fence",
    "ansi",
    "crlf",
    "indent",
    "comment",
];

/// Encodings of a whole text, each with the frame that it is seen in.
const DISGUISES: &[&str] = &[
    "json tool_message",
    "json anthropic_call",
    "json json openai_call",
    "json json event",
    "json json json deep_event",
    "go_json tool_message",
    "percent form",
    "html pre",
    "qp mail",
    "base64 echo_base64",
    "base64_lines mail_base64",
    "base64 data_uri",
    "hex echo_hex",
];

/// Line breaks that divide what is longer than a line; only for tokens, whose length is known.
const BREAKS: &[&str] = &["wrap64", "wrap76", "wrap80", "wrap72_indent", "backslash", "qp mail"];

/// Draws `count` texts with secrets, of every template in turn; a quarter of them are in a frame, and to the disguised
/// class belong templates of the others in an encoding.
pub fn secret_cases(seed: u64, count: usize) -> Vec<ToolText> {
    let all: Vec<ToolTemplate> =
        FILES[..4].iter().flat_map(|(class, file)| templates(*class, file)).collect();
    let encodable: Vec<ToolTemplate> =
        all.iter().filter(|t| t.layers.is_empty() && t.class < TextClass::Disguised).copied().collect();
    let mut dice = Dice(seed);
    let mut cases = Vec::with_capacity(count);
    for at in 0..count {
        // A third more rounds than templates: those are the texts in an encoding.
        let turn = at % (all.len() * 4 / 3);
        match all.get(turn) {
            Some(template) => {
                let framed = template.layers.is_empty() && dice.below(4) == 0;
                let frame = if framed { one(&mut dice, FRAMES) } else { "" };
                cases.push(template.case(template.class, frame, &mut dice));
            }
            None => {
                let template = encodable[dice.below(encodable.len() as u64) as usize];
                let breaks = template.class == TextClass::Vendor && dice.below(3) == 0;
                let layers = one(&mut dice, if breaks { BREAKS } else { DISGUISES });
                cases.push(template.case(TextClass::Disguised, layers, &mut dice));
            }
        }
    }
    cases
}

/// Draws `count` texts of which nothing may be redacted, of every template in turn; a third of them are in a frame or
/// are the content of a JSON message.
pub fn harmless_cases(seed: u64, count: usize) -> Vec<ToolText> {
    let all = templates(TextClass::Harmless, FILES[4].1);
    let mut dice = Dice(seed);
    let mut cases = Vec::with_capacity(count);
    for at in 0..count {
        let template = all[at % all.len()];
        let layers = match dice.below(6) {
            0 => one(&mut dice, FRAMES),
            1 => one(&mut dice, &["json tool_message", "json json openai_call", "json anthropic_call"]),
            _ => "",
        };
        cases.push(template.case(TextClass::Harmless, layers, &mut dice));
    }
    cases
}

/// Returns at least `size` bytes of what an agent reads, in parts: ten harmless outputs to one with a secret.
pub fn typical_texts(seed: u64, size: usize) -> Vec<String> {
    let secret = secret_cases(seed, 2_000);
    let harmless = harmless_cases(seed, 2_000);
    let mut dice = Dice(seed);
    let (mut texts, mut all) = (Vec::new(), 0);
    while all < size {
        let cases = if dice.below(11) == 0 { &secret } else { &harmless };
        let case = &cases[dice.below(cases.len() as u64) as usize];
        let text = format!("$ {}\n{}\n", case.tool, case.text);
        all += text.len();
        texts.push(text);
    }
    texts
}

impl ToolTemplate {
    /// Draws a text of the template in layers: those of the template first, then `layers`.
    fn case(&self, class: TextClass, layers: &str, dice: &mut Dice) -> ToolText {
        let mut marked = Marked::of(self.text, dice);
        for layer in self.layers.split_whitespace().chain(layers.split_whitespace()) {
            marked.layer(layer, dice);
        }
        let (secrets, optional) = places(&marked);
        let name = format!("{}/{}#{} {} {layers}", self.class.name(), self.tool, self.number, self.layers);
        ToolText {
            text: marked.text(),
            secrets,
            optional,
            class,
            tool: self.tool,
            name: name.trim_end().to_owned(),
        }
    }
}

/// Returns the byte ranges of each secret and of the optional parts.
fn places(marked: &Marked) -> (Vec<Vec<Range<usize>>>, Vec<Range<usize>>) {
    let mut secrets = vec![Vec::new(); marked.secrets];
    let mut optional = Vec::new();
    let mut at = 0;
    for (c, stain) in &marked.chars {
        let end = at + c.len_utf8();
        match stain {
            Stain::Plain => (),
            Stain::Secret(number) => extend(&mut secrets[*number], at..end),
            Stain::Optional => extend(&mut optional, at..end),
        }
        at = end;
    }
    (secrets, optional)
}

/// Adds a range after the others, as a part of the last one if it follows on it.
fn extend(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Reads the templates of a file.
fn templates(class: TextClass, file: &'static str) -> Vec<ToolTemplate> {
    let pieces = file.split("\n%%% ").map(|piece| piece.strip_prefix("%%% ").unwrap_or(piece));
    let template = |(number, piece): (usize, &'static str)| {
        let (head, text) = piece.split_once('\n').expect("a text follows the line of its tool");
        let (tool, layers) = head.split_once(':').unwrap_or((head, ""));
        ToolTemplate {
            class,
            tool: tool.trim(),
            layers: layers.trim(),
            text: text.trim_end_matches('\n'),
            number,
        }
    };
    pieces.enumerate().map(template).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn secrets_of_every_template_are_where_they_are_said_to_be() {
        let cases = secret_cases(1, 2000);
        for case in &cases {
            assert!(!case.secrets.is_empty(), "{} has no secret:\n{}", case.name, case.text);
            for parts in &case.secrets {
                let length: usize = parts.iter().map(|part| case.text[part.clone()].chars().count()).sum();
                assert!(length >= 4, "{}: a secret of {length} characters", case.name);
                assert!(parts.windows(2).all(|two| two[0].end < two[1].start), "{}", case.name);
            }
            assert!(!case.text.contains('§'), "{}", case.name);
        }
        let tools: BTreeSet<&str> = cases.iter().map(|case| case.tool).collect();
        assert!(tools.len() >= 40, "{} tools", tools.len());
        for class in TextClass::SECRET {
            assert!(cases.iter().filter(|case| case.class == class).count() >= 50, "{}", class.name());
        }
    }

    #[test]
    fn harmless_texts_have_no_secret() {
        let cases = harmless_cases(1, 1000);
        assert!(cases.iter().all(|case| case.secrets.is_empty()));
        let templates: BTreeSet<&str> = cases.iter().filter_map(|case| case.name.split(' ').next()).collect();
        assert!(templates.len() >= 60, "{} templates", templates.len());
    }

    #[test]
    fn equal_seeds_draw_equal_texts() {
        let texts = |seed| secret_cases(seed, 500).into_iter().map(|case| case.text).collect::<Vec<_>>();
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn a_place_is_kept_through_encodings() {
        let mut dice = Dice(3);
        let mut marked = Marked::of("password=§pin§ end", &mut dice);
        let (secrets, _) = places(&marked);
        let pin = marked.text()[secrets[0][0].clone()].to_owned();
        marked.layer("base64", &mut dice);
        let (secrets, optional) = places(&marked);
        assert_eq!(optional.first().map(|range| range.start), Some(0));
        assert!(secrets[0][0].len() * 3 >= pin.len() * 4, "{:?}", secrets);
        let mut broken = Marked::of("§token|wrap40§", &mut Dice(5));
        broken.layer("json", &mut dice);
        assert!(!broken.text().contains('\n'));
    }
}
