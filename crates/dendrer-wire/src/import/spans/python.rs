//! Values as Python shows them: programs write the arguments of a tool so.

/// Returns a text of literals of Python as JSON; `None` if it has anything else.
pub(super) fn to_json(text: &str) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => string(letter, &mut letters, &mut made)?,
            letter if letter.is_alphabetic() => {
                let mut word = String::from(letter);
                while let Some(next) = letters.next_if(|next| next.is_alphabetic()) {
                    word.push(next);
                }
                made.push_str(match word.as_str() {
                    "True" => "true",
                    "False" => "false",
                    "None" => "null",
                    // The exponent of a number.
                    "e" => "e",
                    _ => return None,
                });
            }
            letter => made.push(letter),
        }
    }
    Some(made)
}

/// Reads a string up to its mark.
fn string(
    mark: char,
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    made: &mut String,
) -> Option<()> {
    made.push('"');
    loop {
        match letters.next()? {
            letter if letter == mark => break,
            '\\' => match letters.next()? {
                '\'' => made.push('\''),
                letter @ ('n' | 't' | 'r' | '\\' | '"' | 'u') => {
                    made.push('\\');
                    made.push(letter);
                }
                'x' => made.push_str("\\u00"),
                _ => return None,
            },
            '"' => made.push_str("\\\""),
            letter => made.push(letter),
        }
    }
    made.push('"');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_python_are_read_as_json() {
        for (text, json) in [
            ("{'n': 1, 'b': [True, False, None]}", r#"{"n": 1, "b": [true, false, null]}"#),
            (r#"{'say': "it's", 'q': 'a "b"'}"#, r#"{"say": "it's", "q": "a \"b\""}"#),
            (r"{'x': 'a\n\xe9\'', 'y': 1e5}", r#"{"x": "a\n\u00e9'", "y": 1e5}"#),
        ] {
            assert_eq!(to_json(text).as_deref(), Some(json));
        }
        for text in ["{'x': Foo()}", "{'x", r"{'x': '\q'}"] {
            assert_eq!(to_json(text), None, "{text}");
        }
    }
}
