//! Cuts a text into tokens, by the lexical grammar of CEL.
//!
//! Never looks at names or meaning. Tokens of CEL that the language leaves out (unsigned and bytes literals) are
//! refused here by name, so that `1u` is not taken for a misspelt `1`.

use super::error::{ExprError, LIMIT, SYNTAX, Span, shown};

/// A token and its span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'t> {
    /// A name or a word of the language; the parser tells them apart, since after a dot every word is a name.
    Name(&'t str),
    /// A name in backquotes, which only a selector may have.
    Quoted(&'t str),
    /// The digits without a sign: `-9223372036854775808` has a magnitude that no positive literal has.
    Int(u64),
    Double(f64),
    Text(String),
    Symbol(&'static str),
    End,
}

/// Operators of other languages, and what each is here.
const MISTAKEN: [(&str, &str); 5] = [("=<", "<="), ("=>", ">="), ("<>", "!="), ("===", "=="), ("!==", "!=")];

/// How many bytes a text may have.
pub const TEXT_SIZE_MAX: usize = 64 << 10;

/// Longer symbols come before those they begin with.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];

/// Cuts the whole text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExprError> {
    if text.len() > TEXT_SIZE_MAX {
        let message =
            format!("{} bytes are more than the {} an expression may have", text.len(), TEXT_SIZE_MAX);
        return Err(ExprError::new(LIMIT, Span::new(0, 0), message));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut all = Vec::new();
    loop {
        let token = lexer.next()?;
        let end = token.kind == Kind::End;
        all.push(token);
        if end {
            return Ok(all);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn next(&mut self) -> Result<Token<'t>, ExprError> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.peek(0) {
            None => Kind::End,
            Some(b'"' | b'\'') => self.string(start, false)?,
            Some(b'`') => self.quoted_name(start)?,
            Some(b'0'..=b'9') => self.number(start)?,
            Some(b'.') if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => self.number(start)?,
            Some(c) if c == b'_' || c.is_ascii_alphabetic() => self.word(start)?,
            Some(_) => self.symbol(start)?,
        };
        Ok(Token { kind, span: Span::new(start, self.at) })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, start: usize, message: impl Into<String>) -> ExprError {
        let end = self.text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
        ExprError::new(SYNTAX, Span::new(start, self.at.max(end)), message)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(|c| matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0c));
            if !self.rest().starts_with("//") {
                return;
            }
            self.skip_while(|c| c != b'\n');
        }
    }

    fn symbol(&mut self, start: usize) -> Result<Kind<'t>, ExprError> {
        if let Some((wrong, right)) = MISTAKEN.iter().find(|(wrong, _)| self.rest().starts_with(wrong)) {
            let span = Span::new(start, start + wrong.len());
            let error = ExprError::new(SYNTAX, span, format!("there is no {wrong}"));
            return Err(error.hint(format!("write {right}")));
        }
        let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) else {
            let found = self.rest().chars().next().unwrap_or(' ');
            if found.is_alphabetic() {
                return Err(self.no_identifier(start));
            }
            let error = self.error(start, format!("'{found}' does not belong here"));
            return Err(match found {
                '=' => error.hint("equality is written =="),
                '&' => error.hint("write && or the word and"),
                '|' => error.hint("write || or the word or"),
                '^' | '~' => error.hint("there are no bit operations"),
                _ => error,
            });
        };
        self.at += symbol.len();
        Ok(Kind::Symbol(symbol))
    }

    /// The error of a name with letters that no identifier has.
    fn no_identifier(&self, start: usize) -> ExprError {
        let is_part = |c: char| c == '_' || c.is_alphanumeric();
        let before = self.text[..start].trim_end_matches(is_part);
        let rest = &self.text[before.len()..];
        let name = rest.split(|c: char| !is_part(c)).next().unwrap_or(rest);
        let place = self.place_before(before);
        let span = Span::new(before.len(), before.len() + name.len());
        ExprError::new(SYNTAX, span, format!("the name `{}` is no identifier", shown(name)))
            .hint(format!("write {place}[\"{name}\"]"))
    }

    /// The path that ends in a dot before a name; `state` without one.
    fn place_before(&self, before: &'t str) -> &'t str {
        let Some(path) = before.strip_suffix('.') else { return "state" };
        let is_step = |c: char| c == '_' || c == '.' || c.is_ascii_alphanumeric();
        let place = &path[path.trim_end_matches(is_step).len()..];
        if place.is_empty() { "state" } else { place }
    }

    /// A name, a word, or the letters in front of a string.
    fn word(&mut self, start: usize) -> Result<Kind<'t>, ExprError> {
        self.skip_while(|c| c == b'_' || c.is_ascii_alphanumeric());
        let word = &self.text[start..self.at];
        if !matches!(self.peek(0), Some(b'"' | b'\'')) {
            return Ok(Kind::Name(word));
        }
        match word {
            "r" | "R" => self.string(start, true),
            "b" | "B" | "rb" | "rB" | "Rb" | "RB" | "br" | "bR" | "Br" | "BR" => {
                Err(ExprError::unsupported(Span::new(start, self.at + 1), "a bytes literal"))
            }
            _ => Err(self.error(start, format!("`{}` is not a prefix of a string", shown(word)))),
        }
    }

    fn quoted_name(&mut self, start: usize) -> Result<Kind<'t>, ExprError> {
        self.at += 1;
        self.skip_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-' | b'/' | b' '));
        let name = &self.text[start + 1..self.at];
        if name.is_empty() || self.peek(0) != Some(b'`') {
            let error =
                self.error(start, "a quoted name holds letters, digits, blanks and _ . - / up to the next `");
            return Err(error.hint("any other name is written as an index: state[\"name\"]"));
        }
        self.at += 1;
        Ok(Kind::Quoted(name))
    }

    fn number(&mut self, start: usize) -> Result<Kind<'t>, ExprError> {
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            self.skip_while(|c| c.is_ascii_hexdigit());
            let value = u64::from_str_radix(&self.text[start + 2..self.at], 16);
            return self.integer(start, value.ok());
        }
        self.skip_while(|c| c.is_ascii_digit());
        let mut is_double = false;
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            is_double = true;
            self.at += 1;
            self.skip_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                is_double = true;
                self.at += 1 + sign;
                self.skip_while(|c| c.is_ascii_digit());
            }
        }
        let digits = &self.text[start..self.at];
        if !is_double {
            return self.integer(start, digits.parse().ok());
        }
        self.end_of_number(start)?;
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Kind::Double(value)),
            _ => Err(self.error(start, "the number is outside the range of a double")),
        }
    }

    fn integer(&mut self, start: usize, value: Option<u64>) -> Result<Kind<'t>, ExprError> {
        if matches!(self.peek(0), Some(b'u' | b'U')) {
            let error = ExprError::unsupported(Span::new(start, self.at + 1), "an unsigned literal");
            return Err(error.hint("numbers have one kind here: leave the u out"));
        }
        self.end_of_number(start)?;
        // One more than the largest int is let through: a minus may stand in front of it.
        match value {
            Some(value) if value <= 1 << 63 => Ok(Kind::Int(value)),
            _ => Err(self.error(start, "the integer is outside the range of 64 bits")),
        }
    }

    fn end_of_number(&self, start: usize) -> Result<(), ExprError> {
        match self.peek(0) {
            // `state.3d`: the dot belongs to the path.
            Some(c) if c == b'_' || c.is_ascii_alphanumeric() => {
                let is_name = self.text[start..].starts_with('.')
                    && self.text[..start]
                        .ends_with(|c: char| c == '_' || c == ']' || c.is_ascii_alphanumeric());
                match is_name {
                    true => Err(self.no_identifier(start + 1)),
                    false => Err(self.error(start, "not a number")),
                }
            }
            _ => Ok(()),
        }
    }

    fn string(&mut self, start: usize, raw: bool) -> Result<Kind<'t>, ExprError> {
        let rest = self.rest();
        let quote = if rest.starts_with("\"\"\"") {
            "\"\"\""
        } else if rest.starts_with("'''") {
            "'''"
        } else {
            &rest[..1]
        };
        self.at += quote.len();
        let mut text = String::new();
        loop {
            if self.rest().starts_with(quote) {
                self.at += quote.len();
                return Ok(Kind::Text(text));
            }
            match self.rest().chars().next() {
                None => return Err(self.error(start, "the string has no end")),
                Some('\n' | '\r') if quote.len() == 1 => {
                    return Err(self
                        .error(start, "the string does not end on its line")
                        .hint("write \\n for a line feed"));
                }
                Some('\\') if !raw => text.push(self.escape()?),
                Some(c) => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ExprError> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            return Err(self.error(start, "the string has no end"));
        };
        self.at += c.len_utf8();
        Ok(match c {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\\' | '?' | '"' | '\'' | '`' => c,
            'x' | 'X' => self.code_point(start, 2, 16)?,
            'u' => self.code_point(start, 4, 16)?,
            'U' => self.code_point(start, 8, 16)?,
            '0'..='3' => {
                self.at -= 1;
                self.code_point(start, 3, 8)?
            }
            _ => return Err(self.error(start, format!("\\{c} is not an escape"))),
        })
    }

    fn code_point(&mut self, start: usize, count: usize, radix: u32) -> Result<char, ExprError> {
        let digits = self.text.get(self.at..self.at + count).filter(|d| d.chars().all(|c| c.is_digit(radix)));
        let Some(digits) = digits else {
            return Err(self.error(start, format!("the escape needs {count} digits")));
        };
        self.at += count;
        u32::from_str_radix(digits, radix)
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| self.error(start, "the escape is not a character of Unicode"))
    }
}
