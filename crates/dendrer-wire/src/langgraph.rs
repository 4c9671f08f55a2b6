//! Bytes of LangGraph's serializer as values: MessagePack with extensions of its own.
//!
//! Bytes that cannot be read, or are encrypted, have no readable form: the record then has the commitment alone.

pub mod database;
mod messages;
pub(crate) mod order;
pub(crate) mod parts;
pub(crate) mod puts;

use dendrer::checkpoint::{Decode, ReadMessages, TypedBytes};
use dendrer::object::number::Number;
use dendrer::object::value::Object;
use dendrer::object::{Value, json, tag};
use rmpv::ValueRef;
use rmpv::decode::read_value_ref_with_max_depth;

/// How deep a value may be nested to be made readable.
const DEPTH_MAX: usize = 100;

/// The longest value that is made readable, in bytes.
const SIZE_MAX: usize = 32 << 20;

/// Extension: a class with one argument.
const SINGLE_ARG: i8 = 0;
/// Extension: a class with arguments.
const POS_ARGS: i8 = 1;
/// Extension: a class with named arguments.
const KW_ARGS: i8 = 2;
/// Extension: a method with one argument.
const METHOD_SINGLE_ARG: i8 = 3;
/// Extension: a model of pydantic 1.
const PYDANTIC_V1: i8 = 4;
/// Extension: a model of pydantic 2.
const PYDANTIC_V2: i8 = 5;
/// Extension: an array of numpy.
const NUMPY_ARRAY: i8 = 6;
/// Extension: what a delta channel holds.
const DELTA_SNAPSHOT: i8 = 7;

/// Modules of pydantic whose `SecretStr`, `SecretBytes` and `Secret` hide their value.
const PYDANTIC_TYPES: [&str; 2] = ["pydantic.types", "pydantic.v1.types"];

/// A value that its class hides, as pydantic writes it.
const MASKED: &str = "**********";

/// Reads what LangGraph's default serializer writes (langgraph-checkpoint 4.3).
#[derive(Debug, Clone, Copy, Default)]
pub struct LangGraph;

impl Decode for LangGraph {
    fn whole(&self, value: &TypedBytes) -> Option<Value> {
        if value.bytes.len() > SIZE_MAX {
            return None;
        }
        match &*value.tag {
            "null" => Some(Value::Null),
            "bytes" | "bytearray" => Some(tag::bytes(&value.bytes)),
            "json" => json::parse_door(&value.bytes).ok(),
            "msgpack" => {
                let mut rest = &value.bytes[..];
                let found = read(&mut rest, DEPTH_MAX)?;
                rest.is_empty().then_some(found)
            }
            _ => None,
        }
    }

    fn head(&self, value: &TypedBytes) -> Option<usize> {
        let (_, items) = list(&value.bytes).filter(|_| *value.tag == *"msgpack")?;
        Some(value.bytes.len() - items.len())
    }

    fn grown(&self, before: &TypedBytes, after: &TypedBytes) -> Option<Vec<Value>> {
        if *before.tag != *"msgpack" || *after.tag != *"msgpack" || after.bytes.len() > SIZE_MAX {
            return None;
        }
        let (count, items) = list(&before.bytes)?;
        let (grown, all) = list(&after.bytes)?;
        let mut rest = all.strip_prefix(items)?;
        let new = grown.checked_sub(count)?;
        let found: Option<Vec<Value>> = (0..new).map(|_| read(&mut rest, DEPTH_MAX - 1)).collect();
        found.filter(|_| rest.is_empty())
    }

    fn messages(&self, value: &Value) -> ReadMessages {
        messages::read(value)
    }
}

/// How many items a list has, and their bytes.
fn list(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [head @ 0x90..=0x9f, items @ ..] => Some((u64::from(head & 0x0f), items)),
        [0xdc, a, b, items @ ..] => Some((u64::from(u16::from_be_bytes([*a, *b])), items)),
        [0xdd, a, b, c, d, items @ ..] => Some((u64::from(u32::from_be_bytes([*a, *b, *c, *d])), items)),
        _ => None,
    }
}

fn read(bytes: &mut &[u8], depth: usize) -> Option<Value> {
    value(&read_value_ref_with_max_depth(bytes, depth).ok()?, depth)
}

fn value(from: &ValueRef<'_>, depth: usize) -> Option<Value> {
    let below = depth.checked_sub(1)?;
    Some(match from {
        ValueRef::Nil => Value::Null,
        ValueRef::Boolean(flag) => Value::Bool(*flag),
        ValueRef::Integer(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Number(Number::from_i64(number)),
            (None, Some(number)) => Value::Number(Number::from_u64(number)),
            (None, None) => return None,
        },
        ValueRef::F32(number) => tag::float(f64::from(*number)),
        ValueRef::F64(number) => tag::float(*number),
        ValueRef::String(text) => match text.as_str() {
            Some(text) => Value::from(text),
            None => tag::bytes(text.as_bytes()),
        },
        ValueRef::Binary(bytes) => tag::bytes(bytes),
        ValueRef::Array(items) => {
            let items: Option<Vec<Value>> = items.iter().map(|item| value(item, below)).collect();
            Value::array(items?)
        }
        ValueRef::Map(members) => {
            // Keys of text have their names, whatever keys of other kinds are called.
            let is_text = |name: &ValueRef<'_>| matches!(name, ValueRef::String(_));
            let (texts, others): (Vec<_>, Vec<_>) = members.iter().partition(|(name, _)| is_text(name));
            let mut object = Object::default();
            for (name, member) in texts.into_iter().chain(others) {
                let name = match name {
                    ValueRef::String(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
                    other => {
                        let is_taken = |name: &str| object.get(&tag::stored_name(name)).is_some();
                        tag::name_of_key(&other.to_string(), kind_of(other), is_taken)
                    }
                };
                object.set(&tag::stored_name(&name), value(member, below)?);
            }
            Value::Object(object)
        }
        ValueRef::Ext(code, bytes) => extension(*code, bytes, below)?,
    })
}

/// The kind of a key, as Python names it.
fn kind_of(key: &ValueRef<'_>) -> &'static str {
    match key {
        ValueRef::Nil => "None",
        ValueRef::Boolean(_) => "bool",
        ValueRef::Integer(_) => "int",
        ValueRef::F32(_) | ValueRef::F64(_) => "float",
        ValueRef::Binary(_) => "bytes",
        ValueRef::Array(_) => "tuple",
        _ => "object",
    }
}

/// An object of Python, as its arguments: of a model or a dataclass its members, of anything with one argument that.
fn extension(code: i8, mut bytes: &[u8], depth: usize) -> Option<Value> {
    let inner = read_value_ref_with_max_depth(&mut bytes, depth).ok()?;
    if code == DELTA_SNAPSHOT {
        return value(&inner, depth);
    }
    let ValueRef::Array(parts) = &inner else { return Some(unknown(code)) };
    match (code, &parts[..]) {
        (
            SINGLE_ARG | POS_ARGS | KW_ARGS | METHOD_SINGLE_ARG | PYDANTIC_V1 | PYDANTIC_V2,
            [module, class, arg, ..],
        ) => {
            let [module, class] = [module, class]
                .map(|name| if let ValueRef::String(name) = name { name.as_str() } else { None });
            let is_masked = class.is_some_and(|class| class.starts_with("Secret"));
            if is_masked && module.is_some_and(|module| PYDANTIC_TYPES.contains(&module)) {
                return Some(Value::from(MASKED));
            }
            let found = value(arg, depth.checked_sub(1)?)?;
            let is_set = code == SINGLE_ARG && matches!(class, Some("set" | "frozenset"));
            Some(if is_set { in_order(found) } else { found })
        }
        (NUMPY_ARRAY, [dtype, shape, ..]) => {
            Some(Value::record([("dtype", value(dtype, depth)?), ("shape", value(shape, depth)?)]))
        }
        _ => Some(unknown(code)),
    }
}

/// The items of a set, in the order of their texts: Python has them in another order in each process.
fn in_order(items: Value) -> Value {
    let Value::Array(list) = &items else { return items };
    let mut list: Vec<Value> = list.iter().cloned().collect();
    list.sort_by_cached_key(json::to_string);
    Value::array(list)
}

fn unknown(code: i8) -> Value {
    tag::gap(&format!("extension_{code}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> TypedBytes {
        TypedBytes { tag: "msgpack".into(), bytes: bytes.into() }
    }

    #[test]
    fn a_list_that_grew_is_read_from_where_it_grew() {
        let before = typed(&[0x92, 1, 0xa1, b'a']);
        let after = typed(&[0x93, 1, 0xa1, b'a', 0xc3]);
        assert_eq!(LangGraph.grown(&before, &after), Some(vec![Value::Bool(true)]));
        assert_eq!(LangGraph.grown(&before, &before), Some(Vec::new()));
        // Another first item, fewer items, bytes behind the last one.
        assert_eq!(LangGraph.grown(&before, &typed(&[0x93, 2, 0xa1, b'a', 0xc3])), None);
        assert_eq!(LangGraph.grown(&after, &before), None);
        assert_eq!(LangGraph.grown(&before, &typed(&[0x93, 1, 0xa1, b'a', 0xc3, 0])), None);
    }

    #[test]
    fn a_set_is_recorded_in_one_order() {
        let of = |class: &[u8], items: &[u8]| {
            let inner =
                [&[0x93, 0xa8][..], b"builtins", &[0xa0 + class.len() as u8], class, &[0x93], items].concat();
            LangGraph
                .whole(&typed(&[&[0xc7, inner.len() as u8, 0][..], &inner].concat()))
                .unwrap()
                .to_string()
        };
        assert_eq!(of(b"set", &[0xa1, b'b', 0xa1, b'a', 3]), r#"["a","b",3]"#);
        assert_eq!(of(b"frozenset", &[3, 0xa1, b'a', 0xa1, b'b']), r#"["a","b",3]"#);
        assert_eq!(of(b"deque", &[3, 0xa1, b'b', 0xa1, b'a']), r#"[3,"b","a"]"#);
    }

    #[test]
    fn keys_of_two_kinds_with_one_name_both_stay() {
        let of = |bytes: &[u8]| LangGraph.whole(&typed(bytes)).unwrap().to_string();
        assert_eq!(of(&[0x82, 1, 0xa1, b'a', 2, 0xa1, b'b']), r#"{"1":"a","2":"b"}"#);
        assert_eq!(of(&[0x82, 1, 0xa1, b'a', 0xa1, b'1', 0xa1, b'b']), r#"{"1":"b","1 (int)":"a"}"#);
        assert_eq!(of(&[0x82, 0xa1, b'1', 0xa1, b'b', 1, 0xa1, b'a']), r#"{"1":"b","1 (int)":"a"}"#);
    }

    #[test]
    fn hostile_bytes_have_no_readable_form() {
        let deep: Vec<u8> = std::iter::repeat_n(0x91, 100_000).chain([0xc0]).collect();
        let huge = [0xdd, 0xff, 0xff, 0xff, 0xff];
        for bytes in [&deep[..], &huge, &[], &[0x92, 1], &[0xd9, 9, b'a']] {
            assert_eq!(LangGraph.whole(&typed(bytes)), None, "{} bytes", bytes.len());
        }
        let encrypted = TypedBytes { tag: "msgpack+aes".into(), bytes: [0xc0][..].into() };
        assert_eq!(LangGraph.whole(&encrypted), None);
    }

    #[test]
    fn a_secret_of_pydantic_is_masked() {
        let of = |module: &[u8], class: &[u8]| {
            let parts: [&[u8]; 5] = [
                &[0x93, 0xa0 + module.len() as u8],
                module,
                &[0xa0 + class.len() as u8],
                class,
                &[0xa2, b'h', b'i'],
            ];
            let inner = parts.concat();
            LangGraph
                .whole(&typed(&[&[0xc7, inner.len() as u8, 0][..], &inner].concat()))
                .unwrap()
                .to_string()
        };
        for class in [&b"SecretStr"[..], b"SecretBytes", b"Secret"] {
            assert_eq!(of(b"pydantic.types", class), r#""**********""#);
            assert_eq!(of(b"pydantic.v1.types", class), r#""**********""#);
        }
        assert_eq!(of(b"game.names", b"SecretStr"), r#""hi""#);
    }

    #[test]
    fn a_model_is_its_members() {
        // (module, class, {"content": "hi"}, method) as extension 5.
        let inner =
            [&[0x94, 0xa1, b'm', 0xa1, b'C', 0x81, 0xa7][..], b"content", &[0xa2], b"hi", &[0xa1, b'v']]
                .concat();
        let bytes = [&[0xc7, inner.len() as u8, 5][..], &inner].concat();
        let expected = Value::record([("content", Value::from("hi"))]);
        assert_eq!(LangGraph.whole(&typed(&bytes)), Some(expected));
    }
}
