//! Modules from outside: the door, and a call of what it lets in.

use dendrer_object::{Delta, Intent, Value};
use dendrer_wasm::{Module, NoAnswer};

/// Less than a call has, so that a module that never ends costs little.
const FUEL: u64 = 200_000;

/// What is taken says the same twice, of one input after another, and is the same module when it is read again. As a
/// predicate and as a reducer.
pub fn module(data: &[u8]) {
    functions(data, "evaluate", [b"{}", br#"{"risk_score":0.8}"#, b"[[[[null]]]]"]);
    let transition = br#"{"state":{"tally":{"food":{"count":0,"sum":0}}},"transition":{"agent":"a","author":"runtime","result":{"output":{"amount":5,"category":"food"},"status":"ok"},"type":"action.result"}}"#;
    functions(data, "reduce", [br#"{"state":{},"transition":{}}"#, transition, b"null"]);
    reducer(data);
}

fn functions(data: &[u8], entry: &'static str, inputs: [&[u8]; 3]) {
    let Ok(module) = Module::new(data, entry) else { return };
    let call = |module: &Module, input| module.call(input, 64, FUEL);
    let first = inputs.map(|input| call(&module, input));
    let again = Module::new(module.bytes(), entry).expect("the same bytes");
    assert_eq!(again.digest(), module.digest());
    for (input, first) in inputs.into_iter().zip(first).rev() {
        assert_eq!(call(&again, input), first);
        match first {
            Ok(answer) => assert!(answer.len() <= 64),
            Err(NoAnswer::Limit(why) | NoAnswer::Trap(why)) => assert!(!why.is_empty()),
        }
    }
}

/// What a reducer answers is a delta in the form that records hold, or an error that is the same each time.
fn reducer(data: &[u8]) {
    // Modules that take long would take all the time there is: those were called with less fuel above.
    let Ok(module) = Module::new(data, "reduce") else { return };
    if matches!(module.call(br#"{"state":{},"transition":{}}"#, 64, FUEL), Err(NoAnswer::Limit(_))) {
        return;
    }
    let reducer = dendrer_wasm::reducer(data).expect("it was taken a moment ago");
    let intent = Intent::new("plan.update".parse().expect("a type"), "a");
    let reduced = reducer.reduce(&Value::object(), &intent);
    assert_eq!(reducer.reduce(&Value::object(), &intent), reduced);
    if let Ok(delta) = reduced {
        assert_eq!(Delta::from_value(&delta.to_value()), Ok(delta));
    }
}
