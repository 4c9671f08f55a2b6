//! Copies places of a state into the state that another run begins with.

use dendrer_kernel::step::{COUNTERS, KERNEL_PATHS};
use dendrer_object::{Object, Pointer, Value};

/// Copies places of a state, each at its place. What the kernel writes is left out.
pub(crate) fn copied(state: &Value, places: &[Pointer]) -> Value {
    let mut made = Object::default();
    for place in places {
        let tokens: Vec<String> = place.tokens().map(Into::into).collect();
        if tokens.first().is_some_and(|name| is_reserved(name)) {
            continue;
        }
        // A value that is no map is copied as a whole, also for a place below it.
        let (mut depth, mut value) = (0, Some(state));
        while depth < tokens.len()
            && let Some(Value::Object(members)) = value
        {
            value = members.get(&tokens[depth]);
            depth += 1;
        }
        if let Some(value) = value {
            put_at(&mut made, &tokens[..depth], value.clone());
        }
    }
    Value::Object(made)
}

/// Returns whether a member at the top of a state belongs to the kernel.
pub(crate) fn is_reserved(name: &str) -> bool {
    KERNEL_PATHS.contains(&name) || name == COUNTERS
}

/// Puts a value into a place given by its tokens, and makes the maps above it.
pub(crate) fn put_at(state: &mut Object, tokens: &[String], value: Value) {
    match tokens {
        [] => {}
        [name] => state.set(name, value),
        [name, rest @ ..] => {
            let mut inner = state.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
            put_at(&mut inner, rest, value);
            state.set(name, Value::Object(inner));
        }
    }
}
