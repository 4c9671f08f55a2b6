//! A predicate and a reducer for dendrer, in one module. `docs/wasm.md` has the interface.
//!
//! The predicate is violated when the state has a risk score above 0.75. The reducer counts and adds up, under `tally`, the
//! amounts that an `action.result` has in its output, by category.

use serde_json::{Value, json};

/// What the predicate says of a state.
fn judge(state: &Value) -> Value {
    match state.get("risk_score").map(Value::as_f64) {
        None => json!("ok"),
        Some(Some(score)) if score > 0.75 => json!("violation"),
        Some(Some(_)) => json!("ok"),
        Some(None) => json!({"uncertain": "risk_score is not a number"}),
    }
}

/// What a transition changes of a state.
fn change(state: &Value, transition: &Value) -> String {
    let error = |why: String| json!({"error": why}).to_string();
    let output = &transition["result"]["output"];
    let Some(amount) = output.get("amount").filter(|_| transition["type"] == "action.result") else {
        return "[]".to_owned();
    };
    let Value::Number(amount) = amount else { return error("an amount is a number".to_owned()) };
    let Some(category) = output["category"].as_str() else {
        return error("an amount has a category".to_owned());
    };
    if state["tally"].get(category).is_none() {
        return error(format!("there is no category {category}"));
    }
    let name = category.replace('~', "~0").replace('/', "~1");
    let path = |member: &str| json!(format!("/tally/{name}/{member}"));
    format!(
        r#"[{{"add":{},"value":1}},{{"add":{},"value":{amount}}}]"#,
        path("count"),
        path("sum")
    )
}

/// Gives room for the input. It is never given back: the instance ends with the call.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(length: u32) -> *mut u8 {
    vec![0; length as usize].leak().as_mut_ptr()
}

/// Judges the state whose canonical JSON stands there, and returns the place of the answer and its length.
///
/// # Safety
///
/// The caller has written `length` bytes to what `alloc` gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evaluate(at: *const u8, length: u32) -> u64 {
    // SAFETY: as above.
    answer(match serde_json::from_slice(unsafe { input(at, length) }) {
        Ok(state) => judge(&state).to_string(),
        Err(_) => json!({"uncertain": "the state cannot be read"}).to_string(),
    })
}

/// Says what the transition changes that stands there beside the state, and returns the place of the answer and its length.
///
/// # Safety
///
/// As for [`evaluate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reduce(at: *const u8, length: u32) -> u64 {
    // SAFETY: as above.
    answer(match serde_json::from_slice::<Value>(unsafe { input(at, length) }) {
        Ok(given) => change(&given["state"], &given["transition"]),
        Err(_) => json!({"error": "the state cannot be read"}).to_string(),
    })
}

/// The bytes that the caller wrote.
///
/// # Safety
///
/// As for [`evaluate`].
unsafe fn input<'i>(at: *const u8, length: u32) -> &'i [u8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(at, length as usize) }
}

/// Leaves an answer in memory.
fn answer(answer: String) -> u64 {
    let bytes = answer.into_bytes().leak();
    (bytes.as_ptr() as u64) << 32 | bytes.len() as u64
}
