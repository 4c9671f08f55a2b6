//! Values of Python and values of the record.
//!
//! What is no JSON has the tagged form of the format: floats that are no numbers, bytes, text with lone surrogates. Names that begin
//! with `$` are the caller's own. What has no form is refused with its place, or becomes a gap where the recorded program must
//! not notice.
//!
//! Rule: no object of the caller is asked for its `repr`, and no error of one is dropped; test `hostile_values`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::number::Number;
use dendrer_object::value::Array;
use dendrer_object::{Value, tag};
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType,
};

/// The deepest nesting that a line has.
const DEPTH_MAX: usize = 128;

/// The longest text or bytes in canonical form.
const SIZE_MAX: usize = 64 << 20;

/// The longest line, in bytes.
const LINE_MAX: usize = 256 << 20;

/// How many values a line has at most: an object that is there many times is written as often.
const NODES_MAX: usize = 1_000_000;

/// No integer of 4,300 decimal digits has more bits.
const BITS_MAX: usize = 14_285;

/// The longest integer in decimal digits.
const DIGITS_MAX: usize = 4300;

/// A value as it was when it was read: what becomes of the object afterwards does not change it.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeValue {
    pub(crate) value: Value,
    pub(crate) gaps: Vec<NotRecordable>,
}

/// Why a value is not recordable.
#[derive(Debug, Clone)]
pub(crate) struct NotRecordable {
    /// The place, as a JSON pointer below the value.
    pub(crate) path: String,
    /// A word for it, as a gap has it.
    pub(crate) reason: &'static str,
    /// What was found there.
    pub(crate) what: String,
    /// Whether the whole line is too large, and not a value of it.
    is_whole: bool,
}

/// Reads values of Python.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Whether what has no form becomes a gap.
    keeps_gaps: bool,
    path: Vec<Step>,
    /// The containers around the value that is read.
    around: Vec<usize>,
    size: usize,
    nodes: usize,
    /// The gaps that were kept.
    pub(crate) gaps: Vec<NotRecordable>,
}

#[derive(Debug)]
enum Step {
    Name(String),
    Index(usize),
}

/// Either an answer of Python, or what is not recordable.
pub(crate) enum Fault {
    Value(NotRecordable),
    /// An error that is not about the value, such as an interrupt.
    Python(PyErr),
}

type Read<T> = Result<T, Fault>;

static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl Reader {
    pub(crate) fn new(keeps_gaps: bool) -> Reader {
        Reader { keeps_gaps, path: Vec::new(), around: Vec::new(), size: 0, nodes: 0, gaps: Vec::new() }
    }

    /// Reads a value. One that has no form is an error, or a gap.
    pub(crate) fn read(&mut self, value: &Bound<'_, PyAny>) -> Read<Value> {
        match self.read_any(value) {
            Err(Fault::Value(fault)) if self.keeps_gaps && !fault.is_whole => {
                let gap = tag::gap(fault.reason, &fault.path);
                self.gaps.push(fault);
                Ok(gap)
            }
            read => read,
        }
    }

    /// The place that is read, as a pointer.
    fn place(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            path.push('/');
            match step {
                Step::Name(name) => path.push_str(&name.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => path.push_str(&index.to_string()),
            }
        }
        path
    }

    fn fault<T>(&self, reason: &'static str, what: impl Into<String>) -> Read<T> {
        let path = self.place();
        Err(Fault::Value(NotRecordable { path, reason, what: what.into(), is_whole: false }))
    }

    fn grow(&mut self, bytes: usize) -> Read<()> {
        if bytes > SIZE_MAX {
            return self.fault("value_too_large", "a value of more than 64 MiB");
        }
        self.size += bytes;
        self.nodes += 1;
        if self.size > LINE_MAX || self.nodes > NODES_MAX {
            let what = "a step of more than 1,000,000 values or 256 MiB";
            return self.fault("value_too_large", what).map_err(|fault| match fault {
                Fault::Value(fault) => Fault::Value(NotRecordable { is_whole: true, ..fault }),
                fault => fault,
            });
        }
        Ok(())
    }

    fn read_any(&mut self, value: &Bound<'_, PyAny>) -> Read<Value> {
        if let Ok(text) = value.cast::<PyString>() {
            return self.text(text);
        }
        if value.is_none() {
            self.grow(4)?;
            return Ok(Value::Null);
        }
        if let Ok(flag) = value.cast::<PyBool>() {
            self.grow(5)?;
            return Ok(Value::Bool(flag.is_true()));
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            self.grow(8)?;
            return Ok(tag::float(number.value()));
        }
        if let Ok(number) = value.cast::<PyInt>() {
            return self.int(number);
        }
        if let Ok(members) = value.cast::<PyDict>() {
            return self.within(value, |reader| reader.dict(members));
        }
        if let Ok(items) = value.cast::<PyList>() {
            // Copied first: what an item's own methods do cannot change what is read.
            let items: Vec<_> = items.iter().collect();
            return self.within(value, |reader| reader.items(&items));
        }
        if let Ok(items) = value.cast::<PyTuple>() {
            let items: Vec<_> = items.iter().collect();
            return self.within(value, |reader| reader.items(&items));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            self.grow(bytes.len() * 4 / 3 + 12)?;
            return Ok(tag::bytes(bytes));
        }
        if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
            return self.buffer(value);
        }
        if let Ok(read) = value.cast::<NativeValue>() {
            let place = self.place();
            let gaps = read.get().gaps.iter().cloned();
            self.gaps.extend(gaps.map(|gap| NotRecordable { path: format!("{place}{}", gap.path), ..gap }));
            return Ok(read.get().value.clone());
        }
        self.other(value)
    }

    fn text(&mut self, text: &Bound<'_, PyString>) -> Read<Value> {
        if let Ok(text) = text.to_str() {
            self.grow(text.len() + 2)?;
            return Ok(Value::from(text));
        }
        // Of the class itself: a subclass may have another one.
        let class = text.py().get_type::<PyString>();
        let units = class
            .call_method1("encode", (text, "utf-16-le", "surrogatepass"))
            .and_then(|bytes| bytes.extract::<Vec<u8>>())
            .map_err(Fault::Python)?;
        self.grow(units.len() * 2)?;
        let units: Vec<u16> =
            units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        Ok(tag::wtf8(&units))
    }

    fn int(&mut self, number: &Bound<'_, PyInt>) -> Read<Value> {
        self.grow(8)?;
        if let Ok(small) = number.extract::<i64>() {
            return Ok(Value::Number(Number::from_i64(small)));
        }
        let class = number.py().get_type::<PyInt>();
        let bits: usize = class
            .call_method1("bit_length", (number,))
            .and_then(|bits| bits.extract())
            .map_err(Fault::Python)?;
        if bits > BITS_MAX {
            return self.fault("value_too_large", "an int of more than 4,300 digits");
        }
        self.grow(bits / 3)?;
        let is_negative: bool = class
            .call_method1("__lt__", (number, 0))
            .and_then(|less| less.extract())
            .map_err(Fault::Python)?;
        let bytes: Vec<u8> = class
            .call_method1("__abs__", (number,))
            .and_then(|size| class.call_method1("to_bytes", (size, bits.div_ceil(8), "little")))
            .and_then(|bytes| bytes.extract())
            .map_err(Fault::Python)?;
        let (sign, digits) = (if is_negative { "-" } else { "" }, decimal(&bytes));
        if digits.len() > DIGITS_MAX {
            return self.fault("value_too_large", "an int of more than 4,300 digits");
        }
        match Number::parse(&format!("{sign}{digits}")) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => self.fault("value_not_recordable", "an int that has no digits"),
        }
    }

    fn within(
        &mut self,
        value: &Bound<'_, PyAny>,
        read: impl FnOnce(&mut Reader) -> Read<Value>,
    ) -> Read<Value> {
        let place = value.as_ptr() as usize;
        if self.around.contains(&place) {
            return self.fault("cycle", "an object that holds itself");
        }
        if self.around.len() == DEPTH_MAX {
            return self.fault("value_too_deep", "more than 128 levels");
        }
        self.grow(2)?;
        self.around.push(place);
        let read = read(self);
        self.around.pop();
        read
    }

    fn dict(&mut self, members: &Bound<'_, PyDict>) -> Read<Value> {
        let members: Vec<_> = members.iter().collect();
        let mut read = Vec::with_capacity(members.len());
        for (key, value) in &members {
            let Ok(name) = key.cast::<PyString>() else { continue };
            let Ok(name) = name.to_str() else {
                return self.fault("key_not_text", "a key with a lone surrogate");
            };
            let value = self.member(name, value)?;
            read.push((tag::stored_name(name), value));
        }
        if read.len() < members.len() {
            self.other_keys(&members, &mut read)?;
        }
        Ok(Value::record(read))
    }

    /// Reads the members of a dict whose keys are no text. Numbers, truth values and `None` are kept under their text where gaps are,
    /// and each is listed as a gap.
    fn other_keys(
        &mut self,
        members: &[(Bound<'_, PyAny>, Bound<'_, PyAny>)],
        read: &mut Vec<(Arc<str>, Value)>,
    ) -> Read<()> {
        let mut taken: BTreeSet<Arc<str>> = read.iter().map(|(name, _)| Arc::clone(name)).collect();
        for (key, value) in members.iter().filter(|(key, _)| !key.is_instance_of::<PyString>()) {
            let kind = type_of(key);
            let what = format!("a key of type {kind}");
            let is_plain = key.is_none()
                || key.is_exact_instance_of::<PyBool>()
                || key.is_exact_instance_of::<PyInt>()
                || key.is_exact_instance_of::<PyFloat>();
            let text = key.str().ok().and_then(|text| text.to_str().ok().map(str::to_owned));
            let Some(text) = text.filter(|_| is_plain && self.keeps_gaps) else {
                return self.fault("key_not_text", what);
            };
            let name = tag::name_of_key(&text, &kind, |name| taken.contains(&tag::stored_name(name)));
            taken.insert(tag::stored_name(&name));
            self.path.push(Step::Name(name.clone()));
            let gap = NotRecordable { path: self.place(), reason: "key_not_text", what, is_whole: false };
            self.path.pop();
            self.gaps.push(gap);
            let value = self.member(&name, value)?;
            read.push((tag::stored_name(&name), value));
        }
        Ok(())
    }

    /// Reads a member of an object.
    fn member(&mut self, name: &str, value: &Bound<'_, PyAny>) -> Read<Value> {
        self.grow(name.len() + 4)?;
        self.path.push(Step::Name(name.to_owned()));
        let value = self.read(value);
        self.path.pop();
        value
    }

    fn items(&mut self, items: &[Bound<'_, PyAny>]) -> Read<Value> {
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.grow(1)?;
            self.path.push(Step::Index(index));
            let value = self.read(item);
            self.path.pop();
            values.push(value?);
        }
        Ok(Value::Array(Array::from(values)))
    }

    fn buffer(&mut self, value: &Bound<'_, PyAny>) -> Read<Value> {
        let bytes = value.py().get_type::<PyBytes>().call1((value,));
        match bytes.and_then(|bytes| bytes.extract::<Vec<u8>>()) {
            Ok(bytes) => {
                self.grow(bytes.len() * 4 / 3 + 12)?;
                Ok(tag::bytes(&bytes))
            }
            Err(error) => self.raised(value, error),
        }
    }

    /// A dataclass, a model of pydantic or a time; nothing else has a form.
    fn other(&mut self, value: &Bound<'_, PyAny>) -> Read<Value> {
        let py = value.py();
        let class = value.get_type();
        if self.has(&class, "__dataclass_fields__")? && !value.is_instance_of::<PyType>() {
            let fields = py.import("dataclasses").and_then(|module| module.call_method1("fields", (value,)));
            let names = fields.and_then(|fields| {
                fields.try_iter()?.map(|field| field?.getattr("name")).collect::<PyResult<Vec<_>>>()
            });
            return match names {
                Ok(names) => self.within(value, |reader| reader.fields(value, &names)),
                Err(error) => self.raised(value, error),
            };
        }
        if self.has(&class, "model_dump")? && self.has(&class, "model_fields")? {
            return match dumped(value) {
                Ok(dumped) => self.within(value, |reader| reader.read_any(&dumped)),
                Err(error) => self.raised(value, error),
            };
        }
        let datetime = DATETIME.import(py, "datetime", "datetime").map_err(Fault::Python)?;
        let is_time = match value.is_instance(datetime) {
            Ok(is_time) => is_time,
            Err(error) => return self.raised(value, error),
        };
        if is_time {
            let text = datetime.call_method1("isoformat", (value,)).and_then(|text| text.extract::<String>());
            return match text {
                Ok(text) => match rfc_3339(&text) {
                    Some(text) => {
                        self.grow(text.len() + 2)?;
                        Ok(Value::from(text))
                    }
                    None => {
                        self.fault("value_not_recordable", "a time without an offset in hours and minutes")
                    }
                },
                Err(error) => self.raised(value, error),
            };
        }
        self.fault("value_not_recordable", format!("an object of type {}", type_of(value)))
    }

    /// Whether a class has an attribute. An error that is no answer is passed on.
    fn has(&self, class: &Bound<'_, PyType>, name: &str) -> Read<bool> {
        match class.getattr(name) {
            Ok(_) => Ok(true),
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyException>(class.py()) => Ok(false),
            Err(error) => Err(Fault::Python(error)),
        }
    }

    fn fields(&mut self, value: &Bound<'_, PyAny>, names: &[Bound<'_, PyAny>]) -> Read<Value> {
        let mut read = Vec::with_capacity(names.len());
        for name in names {
            let Ok(name) = name.extract::<String>() else {
                return self.fault("key_not_text", "a field whose name is no text");
            };
            self.grow(name.len() + 4)?;
            self.path.push(Step::Name(name.clone()));
            let member = match value.getattr(&*name) {
                Ok(member) => self.read(&member),
                Err(error) => self.raised(value, error),
            };
            self.path.pop();
            read.push((tag::stored_name(&name), member?));
        }
        Ok(Value::record(read))
    }

    /// An object whose own method failed. Interrupts and exits are passed on.
    fn raised<T>(&self, value: &Bound<'_, PyAny>, error: PyErr) -> Read<T> {
        let py = value.py();
        if !error.is_instance_of::<pyo3::exceptions::PyException>(py) {
            return Err(Fault::Python(error));
        }
        let raised = error.get_type(py).name().map_or_else(|_| "an error".into(), |name| name.to_string());
        let word = if error.is_instance_of::<PyRecursionError>(py) {
            "value_too_deep"
        } else {
            "value_not_recordable"
        };
        self.fault(word, format!("an object of type {} that raised {raised}", type_of(value)))
    }
}

/// Writes little-endian bytes as decimal digits. Python itself may be told to write fewer digits than a record takes.
fn decimal(bytes: &[u8]) -> String {
    const BASE: u64 = 1_000_000_000;
    let mut groups: Vec<u64> = vec![0];
    for byte in bytes.iter().rev() {
        let mut carry = u64::from(*byte);
        for group in &mut groups {
            let next = *group * 256 + carry;
            (*group, carry) = (next % BASE, next / BASE);
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let mut groups = groups.into_iter().rev();
    let first = groups.next().unwrap_or(0).to_string();
    groups.fold(first, |text, group| format!("{text}{group:09}"))
}

/// Makes a text of `isoformat` one of RFC 3339; `None` if its offset is missing or has seconds.
fn rfc_3339(text: &str) -> Option<String> {
    let (time, offset) = text.split_at_checked(text.rfind(['+', '-']).filter(|at| *at > 10)?)?;
    match offset.len() {
        6 if offset == "+00:00" => Some(format!("{time}Z")),
        6 => Some(text.to_owned()),
        _ => None,
    }
}

/// The name of the class of a value, which no class can make fail.
fn type_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Turns a value of the record into one of Python. Tagged forms of floats, bytes and text become those; any other tagged form stays as
/// it is.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => PyFloat::new(py, number).into_any(),
            (None, None) => integer(py, &number.to_string())?,
        },
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items.iter() {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(members) => {
            if members.len() == 1
                && let Some(decoded) = decoded(py, value)?
            {
                return Ok(decoded);
            }
            let dict = PyDict::new(py);
            for (name, member) in members.iter() {
                let name = tag::user_name(name);
                dict.set_item(name, to_python(py, member)?)?;
            }
            dict.into_any()
        }
    })
}

/// Makes an int of its digits, some at a time: Python may be told to read fewer at once than a record has.
fn integer<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = py.get_type::<PyInt>();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let mut value = 0_i64.into_pyobject(py)?.into_any();
    for part in digits.as_bytes().chunks(500) {
        let part = std::str::from_utf8(part).unwrap_or("0");
        let scale = class.call1((format!("1{}", "0".repeat(part.len())),))?;
        value = value.mul(scale)?.add(class.call1((part,))?)?;
    }
    value.mul(sign)
}

fn decoded<'py>(py: Python<'py>, value: &Value) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(number) = tag::as_float(value) {
        return Ok(Some(PyFloat::new(py, number).into_any()));
    }
    if let Some(bytes) = tag::as_bytes(value) {
        return Ok(Some(PyBytes::new(py, &bytes).into_any()));
    }
    if let Some(units) = tag::as_wtf8(value) {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let bytes = PyBytes::new(py, &bytes);
        return Ok(Some(bytes.call_method1("decode", ("utf-16-le", "surrogatepass"))?));
    }
    Ok(None)
}

/// A model of pydantic as JSON, with what JSON loses of it: entries of a dict whose keys have one text, and numbers that are
/// infinite or none. Members of a subclass are kept, where pydantic can (2.7).
fn dumped<'py>(model: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dump = |mode: &str| {
        let keywords = PyDict::new(model.py());
        keywords.set_item("mode", mode)?;
        keywords.set_item("serialize_as_any", true)?;
        // A pydantic before 2.7 does not know the word, and by their classes some values have no form.
        model.call_method("model_dump", (), Some(&keywords)).or_else(|_| {
            keywords.del_item("serialize_as_any")?;
            model.call_method("model_dump", (), Some(&keywords))
        })
    };
    with_lost(&dump("python")?, dump("json")?, 0)
}

/// A value in the words of JSON, with what JSON lost of it.
fn with_lost<'py>(
    whole: &Bound<'py, PyAny>,
    json: Bound<'py, PyAny>,
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = json.py();
    if depth == DEPTH_MAX {
        return Ok(json);
    }
    if let (Ok(members), Ok(named)) = (whole.cast::<PyDict>(), json.cast::<PyDict>()) {
        if members.len() != named.len() {
            return Ok(whole.clone());
        }
        let made = PyDict::new(py);
        for ((_, member), (name, value)) in members.iter().zip(named.iter()) {
            made.set_item(name, with_lost(&member, value, depth + 1)?)?;
        }
        return Ok(made.into_any());
    }
    let items = whole.cast::<PyList>().map(|items| items.iter().collect::<Vec<_>>());
    let items = items.or_else(|_| whole.cast::<PyTuple>().map(|items| items.iter().collect()));
    if let (Ok(items), Ok(values)) = (items, json.cast::<PyList>())
        && items.len() == values.len()
    {
        let made = items.iter().zip(values.iter()).map(|(item, value)| with_lost(item, value, depth + 1));
        return Ok(PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)?.into_any());
    }
    let is_lost = json.is_none() && whole.is_instance_of::<PyFloat>();
    Ok(if is_lost { whole.clone() } else { json })
}
