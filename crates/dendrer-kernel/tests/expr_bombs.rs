//! Bombs: about 200 texts that would take hours, end by the budget, everywhere at the same step.

mod bombs;

use dendrer_kernel::expr::{Budget, Env, EvalError};

#[test]
fn bombs_end_by_the_budget_and_leave_nothing_of_it() {
    let state = bombs::state();
    let all = bombs::bombs();
    assert!(all.len() >= 200, "{} bombs", all.len());
    let mut survived = Vec::new();
    for bomb in &all {
        let mut budget = Budget::default();
        let found = bomb.expr.evaluate(&Env::of(&state), &mut budget);
        if found != Err(EvalError::Exhausted) || budget.left() > 0 {
            survived.push(format!(
                "{}: {} steps are left of {}",
                bomb.family,
                budget.left(),
                bomb.expr.text()
            ));
        }
    }
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}
