//! A decision binds in the runs that continue the one in which it was made (design, 14.1).

use dendrer::kernel::step::Stage;
use dendrer::verify;
use dendrer_object::record::{Link, Rel};
use dendrer_testkit::run_name;

use crate::doors::merge_with_twin;
use crate::draw::{PackKind, v};
use crate::found::Found;
use crate::world::World;

const PAY: &str = r#"{"type":"action.request","agent":"a","action":{"tool":"pay","params":{"n":77}}}"#;
const PAID: &str = r#"{"type":"action.result","author":"runtime","agent":"a","action":{"tool":"pay","call_id":"k1"},"result":{"output":{"n":77},"status":"ok"}}"#;
const ALLOW: &str =
    r#"{"type":"policy.decision","author":"runtime","agent":"a","policy":{"decision":"allow"}}"#;

/// A merged run refuses what was denied in a source, notes a result of it, and takes the call once an `allow` names the request of
/// the source. It says so by its own record: replay makes the same.
#[test]
fn a_merged_run_refuses_what_a_source_denied_until_it_is_allowed() {
    let world = World::new(PackKind::Delta, false);
    merge_with_twin(&world, Stage::Contracts, "merged");
    let asked = world.trace("base2").record(3).unwrap().id();
    let intent = |line: &str| world.intent(&v(line)).unwrap();
    let mut recorder = world.resume("merged");
    let mut told = |line| {
        let found = Found::of(&recorder.propose(&line).unwrap());
        recorder.commit().unwrap();
        found
    };
    assert_eq!(told(intent(PAY)).code(), Some("E0435"));
    let Found::Taken { notes, .. } = told(intent(PAID)) else { panic!("a result is never refused") };
    assert!(notes.iter().any(|(kind, _)| kind == "acted_after_deny"), "{notes:?}");
    // An `allow` that names nothing lifts nothing, one that names the request of the source does.
    told(intent(ALLOW));
    let mut allow = intent(ALLOW);
    allow.links.push(Link { rel: Rel::CausedBy, hash: asked });
    told(allow);
    assert_eq!(told(intent(PAY)).code(), None);
    let run = run_name("merged");
    let tip = world.trace("merged").tip();
    assert_eq!(verify::replay(world.store(), &run).unwrap(), Ok(tip));
}
