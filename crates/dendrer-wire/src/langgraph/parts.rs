//! A checkpoint in one piece, cut into its channels: a database has both in one value, a saver of ours has each by itself.
//!
//! Rule: values are cut out of the bytes and never written anew; test `a_checkpoint_is_cut_at_its_bytes`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer::checkpoint::TypedBytes;
use dendrer::object::{Value, json};

use super::{DEPTH_MAX, SIZE_MAX, read};

/// Member of a checkpoint with the contents of its channels.
const VALUES: &str = "channel_values";

/// Member of a checkpoint with the versions of its channels.
const VERSIONS: &str = "channel_versions";

/// A checkpoint and the contents of its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The checkpoint without what its channels hold.
    pub(crate) own: TypedBytes,
    /// The channels in the order of the checkpoint.
    pub(crate) channels: Vec<Channel>,
}

/// A channel of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its version, as JSON; `null` if the checkpoint has none.
    pub(crate) version: Arc<str>,
    /// Its content.
    pub(crate) value: TypedBytes,
}

/// A member of an object: its name, its bytes with the name, and the bytes of its value.
type Member<'b> = (String, &'b [u8], &'b [u8]);

/// Cuts a checkpoint; `None` if its bytes cannot be read.
pub(crate) fn cut(whole: &TypedBytes) -> Option<Parts> {
    let members = match &*whole.tag {
        _ if whole.bytes.len() > SIZE_MAX => None,
        "msgpack" => packed(&whole.bytes),
        "json" => json::parse_door(&whole.bytes).ok().and_then(|_| written(&whole.bytes)),
        _ => None,
    }?;
    let is_json = &*whole.tag == "json";
    let of = |bytes: &[u8]| TypedBytes { tag: Arc::clone(&whole.tag), bytes: bytes.into() };
    let member = |wanted: &str| members.iter().find(|(name, ..)| name == wanted).map(|(.., value)| *value);
    let inner = |bytes| if is_json { written(bytes) } else { packed(bytes) };
    let versions = member(VERSIONS).map_or_else(|| Some(Vec::new()), inner)?;
    let version = |wanted: &str| -> Option<Arc<str>> {
        match versions.iter().find(|(name, ..)| name == wanted) {
            None => Some("null".into()),
            Some((.., bytes)) => Some(json::to_string(&decoded(bytes, is_json)?).into()),
        }
    };
    let values = member(VALUES).map_or_else(|| Some(Vec::new()), inner)?;
    let channel = |(name, _, value): &Member<'_>| {
        Some(Channel { version: version(name)?, name: name.as_str().into(), value: of(value) })
    };
    let rest: Vec<&[u8]> =
        members.iter().filter(|(name, ..)| name != VALUES).map(|(_, bytes, _)| *bytes).collect();
    let own = match is_json {
        true => [b"{".as_slice(), &rest.join(&b','), b"}"].concat(),
        false => [map_head(rest.len()), rest.concat()].concat(),
    };
    Some(Parts { channels: values.iter().map(channel).collect::<Option<_>>()?, own: of(&own) })
}

fn decoded(bytes: &[u8], is_json: bool) -> Option<Value> {
    match is_json {
        true => json::parse_door(bytes).ok(),
        false => read(&mut &bytes[..], DEPTH_MAX),
    }
}

/// The head of a map of MessagePack.
fn map_head(count: usize) -> Vec<u8> {
    match (u8::try_from(count), u16::try_from(count)) {
        (Ok(few @ ..=15), _) => vec![0x80 | few],
        (_, Ok(some)) => [&[0xde][..], &some.to_be_bytes()].concat(),
        _ => [&[0xdf][..], &(count as u32).to_be_bytes()].concat(),
    }
}

/// The members of a map of MessagePack; `None` if it is another value, or a name is not text or there twice.
fn packed(bytes: &[u8]) -> Option<Vec<Member<'_>>> {
    let (count, mut rest) = match bytes {
        [head @ 0x80..=0x8f, rest @ ..] => (u64::from(head & 0x0f), rest),
        [0xde, a, b, rest @ ..] => (u64::from(u16::from_be_bytes([*a, *b])), rest),
        [0xdf, a, b, c, d, rest @ ..] => (u64::from(u32::from_be_bytes([*a, *b, *c, *d])), rest),
        _ => return None,
    };
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut names = BTreeSet::new();
    for _ in 0..count {
        let from = rest;
        let name = match read(&mut rest, DEPTH_MAX)? {
            Value::String(name) => name.to_string(),
            _ => return None,
        };
        let value = rest;
        read(&mut rest, DEPTH_MAX)?;
        let (member, value) = (&from[..from.len() - rest.len()], &value[..value.len() - rest.len()]);
        if !names.insert(name.clone()) {
            return None;
        }
        members.push((name, member, value));
    }
    rest.is_empty().then_some(members)
}

/// The members of an object of JSON, which is known to be JSON.
fn written(bytes: &[u8]) -> Option<Vec<Member<'_>>> {
    let mut at = after_blanks(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    loop {
        at = after_blanks(bytes, at + 1);
        if bytes.get(at)? == &b'}' {
            return Some(members);
        }
        let from = at;
        at = after_value(bytes, at)?;
        let name = json::parse_door(bytes.get(from..at)?).ok()?.as_str()?.to_owned();
        at = after_blanks(bytes, at);
        let value = after_blanks(bytes, at + 1);
        at = after_value(bytes, value)?;
        members.push((name, &bytes[from..at], &bytes[value..at]));
        at = after_blanks(bytes, at);
        if bytes.get(at)? == &b'}' {
            return Some(members);
        }
    }
}

fn after_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of a value of JSON that begins at `from`.
fn after_value(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut depth, mut is_text, mut at) = (0_usize, false, from);
    loop {
        match (is_text, *bytes.get(at)?) {
            (true, b'\\') => at += 1,
            (_, b'"') => is_text = !is_text,
            (true, _) => {}
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']' | b',' | b':') if depth == 0 => return Some(at),
            (false, b'}' | b']') => depth -= 1,
            (false, _) => {}
        }
        at += 1;
        let is_closed = !is_text && depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']');
        if is_closed || depth == 0 && !is_text && bytes.get(at).is_none_or(u8::is_ascii_whitespace) {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(tag: &str, bytes: &[u8]) -> TypedBytes {
        TypedBytes { tag: tag.into(), bytes: bytes.into() }
    }

    #[test]
    fn a_checkpoint_is_cut_at_its_bytes() {
        // {"v": 1, "channel_values": {"a": [1], "b": nil}, "channel_versions": {"a": "2.5"}}
        let values = b"\xaechannel_values\x82\xa1a\x91\x01\xa1b\xc0";
        let rest = [&b"\xa1v\x01"[..], b"\xb0channel_versions\x81\xa1a\xa32.5"];
        let whole = [b"\x83", rest[0], values, rest[1]].concat();
        let parts = cut(&typed("msgpack", &whole)).unwrap();
        assert_eq!(*parts.own.bytes, [b"\x82", rest[0], rest[1]].concat());
        let shown: Vec<String> = parts
            .channels
            .iter()
            .map(|one| format!("{} {} {:x?}", one.name, one.version, one.value.bytes))
            .collect();
        assert_eq!(shown, [r#"a "2.5" [91, 1]"#, "b null [c0]"]);
    }

    #[test]
    fn a_checkpoint_of_json_is_cut_at_its_bytes() {
        let text = r#" { "v" : 4,"channel_values":{"a": [1.0, "]}\"," ] , "b":null ,"c":{"d":{}}},"channel_versions":{"a":3} } "#;
        let parts = cut(&typed("json", text.as_bytes())).unwrap();
        let text = |value: &TypedBytes| String::from_utf8(value.bytes.to_vec()).unwrap();
        assert_eq!(text(&parts.own), r#"{"v" : 4,"channel_versions":{"a":3}}"#);
        let shown: Vec<String> = parts
            .channels
            .iter()
            .map(|one| format!("{} {} {}", one.name, one.version, text(&one.value)))
            .collect();
        assert_eq!(shown, [r#"a 3 [1.0, "]}\"," ]"#, "b null null", r#"c null {"d":{}}"#]);
        let empty = cut(&typed("json", b"{\"channel_values\":{}}")).unwrap();
        assert_eq!((text(&empty.own), empty.channels.len()), ("{}".into(), 0));
    }

    #[test]
    fn other_bytes_are_not_cut() {
        for (tag, bytes) in [
            ("msgpack", &b"\x83\xa1v\x01"[..]),
            ("msgpack", b"\x81\xa1v\x01\x00"),
            ("msgpack", b"\x82\xa1v\x01\xa1v\x02"),
            ("msgpack", b"\xdf\xff\xff\xff\xff"),
            ("msgpack", b"\x81\xaechannel_values\x90"),
            ("msgpack", b""),
            ("json", b"{\"channel_values\":[]}"),
            ("json", b"[]"),
            ("json", b"{"),
            ("msgpack+aes", b"\x80"),
            ("pickle", b"\x80"),
        ] {
            assert_eq!(cut(&typed(tag, bytes)), None, "{tag} {bytes:x?}");
        }
    }
}
