//! Exports as Parquet and `fleet`, as a user meets them; without the feature `fleet` both are refused by name.

#[cfg(feature = "fleet")]
#[test]
fn the_page_on_fleet_prints_what_it_shows() {
    let (_, commands) = crate::tutorial::follow("fleet.md");
    assert!(commands > 6, "{commands} commands were run");
}

#[cfg(not(feature = "fleet"))]
#[test]
fn a_program_without_the_feature_says_e0818() {
    let place = crate::support::Place::with_store();
    for args in [
        &["export", "--format", "parquet", "--dir", "exp"][..],
        &["export", "--check", "exp"],
        &["fleet", "bisect", "--dir", "exp", "--holds", "true"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 8, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("error[E0818]") && ran.stderr.contains("--features fleet"),
            "{}",
            ran.stderr
        );
    }
    assert!(!place.path().join("exp").exists());
}
