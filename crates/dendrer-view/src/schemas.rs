//! The published JSON Schemas (draft 2020-12), one for each document that is printed.

/// Names and texts, in order.
pub const SCHEMAS: &[(&str, &str)] = &[
    ("backtrack", include_str!("../schemas/backtrack.json")),
    ("backup", include_str!("../schemas/backup.json")),
    ("bisect", include_str!("../schemas/bisect.json")),
    ("bisect-all", include_str!("../schemas/bisect-all.json")),
    ("commit", include_str!("../schemas/commit.json")),
    ("demo", include_str!("../schemas/demo.json")),
    ("diff", include_str!("../schemas/diff.json")),
    ("doctor", include_str!("../schemas/doctor.json")),
    ("error", include_str!("../schemas/error.json")),
    ("event", include_str!("../schemas/event.json")),
    ("exit-codes", include_str!("../schemas/exit-codes.json")),
    ("explain", include_str!("../schemas/explain.json")),
    ("export", include_str!("../schemas/export.json")),
    ("fields", include_str!("../schemas/fields.json")),
    ("fsck", include_str!("../schemas/fsck.json")),
    ("gc", include_str!("../schemas/gc.json")),
    ("help", include_str!("../schemas/help.json")),
    ("import", include_str!("../schemas/import.json")),
    ("init", include_str!("../schemas/init.json")),
    ("intent", include_str!("../schemas/intent.json")),
    ("log", include_str!("../schemas/log.json")),
    ("pack", include_str!("../schemas/pack.json")),
    ("pack-check", include_str!("../schemas/pack-check.json")),
    ("pack-test", include_str!("../schemas/pack-test.json")),
    ("predicate", include_str!("../schemas/predicate.json")),
    ("predicate-test", include_str!("../schemas/predicate-test.json")),
    ("predicates", include_str!("../schemas/predicates.json")),
    ("profile", include_str!("../schemas/profile.json")),
    ("progress", include_str!("../schemas/progress.json")),
    ("record", include_str!("../schemas/record.json")),
    ("reduce", include_str!("../schemas/reduce.json")),
    ("replay", include_str!("../schemas/replay.json")),
    ("report", include_str!("../schemas/report.json")),
    ("restore", include_str!("../schemas/restore.json")),
    ("runs", include_str!("../schemas/runs.json")),
    ("schemas", include_str!("../schemas/schemas.json")),
    ("show", include_str!("../schemas/show.json")),
    ("state", include_str!("../schemas/state.json")),
    ("state-difference", include_str!("../schemas/state-difference.json")),
    ("suite", include_str!("../schemas/suite.json")),
    ("verify", include_str!("../schemas/verify.json")),
    ("verify-all", include_str!("../schemas/verify-all.json")),
    ("version", include_str!("../schemas/version.json")),
    ("why", include_str!("../schemas/why.json")),
];

/// Finds a schema.
pub fn find(name: &str) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
