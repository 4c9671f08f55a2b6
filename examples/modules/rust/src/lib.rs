//! A predicate for dendrer: violated when the state has a risk score above 0.75. `docs/wasm.md` has the interface.

use serde_json::Value;

/// What the predicate says of a state.
fn judge(state: &Value) -> String {
    match state.get("risk_score").map(Value::as_f64) {
        None => r#""ok""#.to_owned(),
        Some(Some(score)) if score > 0.75 => r#""violation""#.to_owned(),
        Some(Some(_)) => r#""ok""#.to_owned(),
        Some(None) => r#"{"uncertain":"risk_score is not a number"}"#.to_owned(),
    }
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
    let input = unsafe { std::slice::from_raw_parts(at, length as usize) };
    let answer = match serde_json::from_slice(input) {
        Ok(state) => judge(&state),
        Err(_) => r#"{"uncertain":"the state cannot be read"}"#.to_owned(),
    };
    let answer = answer.into_bytes().leak();
    (answer.as_ptr() as u64) << 32 | answer.len() as u64
}
