//! Modules from outside: the door, and a call of what it lets in.

use dendrer_wasm::{Module, NoAnswer};

/// Less than a call has, so that a module that never ends costs little.
const FUEL: u64 = 200_000;

/// What is taken says the same twice, of one input after another, and is the same module when it is read again.
pub fn module(data: &[u8]) {
    let Ok(module) = Module::new(data, "evaluate") else { return };
    let inputs: [&[u8]; 3] = [b"{}", br#"{"risk_score":0.8}"#, b"[[[[null]]]]"];
    let call = |module: &Module, input| module.call(input, 64, FUEL);
    let first = inputs.map(|input| call(&module, input));
    let again = Module::new(module.bytes(), "evaluate").expect("the same bytes");
    assert_eq!(again.digest(), module.digest());
    for (input, first) in inputs.into_iter().zip(first).rev() {
        assert_eq!(call(&again, input), first);
        match first {
            Ok(answer) => assert!(answer.len() <= 64),
            Err(NoAnswer::Limit(why) | NoAnswer::Trap(why)) => assert!(!why.is_empty()),
        }
    }
}
