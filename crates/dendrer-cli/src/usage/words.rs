//! Words and flags of other tools, and what to type instead.
//!
//! Upper-case words of a command are filled in from what was typed: `RUN` is the first word after the verb, `@` without
//! one; `PLACE` and `OTHER` the second; `PATTERN` and `NAME` the first; `FILE` the first if there is such a file. A
//! command with a word that was not typed is left out.

/// A word that is no verb.
pub(super) struct Word {
    /// The spellings.
    pub(super) names: &'static [&'static str],
    /// Whether a later release has the verb.
    pub(super) is_planned: bool,
    /// A remark; empty for none.
    pub(super) note: &'static str,
    /// Commands, of which the first two that can be filled in are printed.
    pub(super) commands: &'static [&'static str],
}

const fn word(names: &'static [&'static str], commands: &'static [&'static str]) -> Word {
    Word { names, is_planned: false, note: "", commands }
}

const fn noted(
    names: &'static [&'static str],
    note: &'static str,
    commands: &'static [&'static str],
) -> Word {
    Word { names, is_planned: false, note, commands }
}

const fn planned(name: &'static [&'static str], commands: &'static [&'static str]) -> Word {
    Word { names: name, is_planned: true, note: "", commands }
}

const NOT_SET_BACK: &str = "a run is not set back; a fork goes on from an earlier tick";
const NOT_CHANGED: &str = "a record is not changed; a fork goes on without it";

/// The words, each in one row.
pub(super) const WORDS: &[Word] = &[
    word(&["web", "dashboard", "port-forward", "server"], &["serve"]),
    planned(&["ui", "tui"], &["log RUN"]),
    planned(&["record"], &["commit --help"]),
    word(&["keys"], &["key show"]),
    planned(&["fleet"], &["runs"]),
    planned(&["anchor"], &["verify --all"]),
    planned(&["config"], &["help globals"]),
    planned(&["op", "operation"], &["runs --all"]),
    planned(&["undo", "redo"], &["fork RUN --from tip -n"]),
    word(&["list", "get", "ps", "sessions", "threads", "size", "count", "wc", "du"], &["runs"]),
    word(&["blame", "annotate", "praise"], &["why RUN PLACE", "why --help"]),
    word(&["grep", "search", "find", "query", "rg"], &["log OTHER --grep PATTERN", "log --grep TEXT"]),
    word(&["stats", "cost", "usage", "tokens", "top", "counters", "metrics"], &["state RUN counters"]),
    noted(
        &["clone", "pull", "fetch", "download", "load", "ingest"],
        "runs come in from files",
        &["import FILE"],
    ),
    word(&["add", "append", "insert", "put", "write"], &["commit --run NEW --file FILE"]),
    word(&["HEAD", "tip", "last", "latest"], &["show @"]),
    word(&["head"], &["log RUN --to 10"]),
    word(&["tail"], &["log RUN -n 10"]),
    word(&["watch", "logs", "follow", "stream"], &["log RUN -n 10", "log RUN --follow"]),
    word(&["ls-files", "ls-tree", "files", "tree", "fields", "paths"], &["state RUN --depth 1"]),
    word(&["cat-file", "rev-parse"], &["show RUN --raw-json"]),
    word(&["cat", "view", "print", "dump", "read", "less"], &["log RUN --full"]),
    word(
        &[
            "history",
            "trace",
            "timeline",
            "events",
            "messages",
            "transcript",
            "whatchanged",
            "shortlog",
            "reflog",
            "rev-list",
            "evolog",
            "obslog",
        ],
        &["log RUN"],
    ),
    word(&["describe", "inspect", "info", "details"], &["show RUN"]),
    noted(
        &[
            "rollback", "reset", "checkout", "switch", "rewind", "goto", "edit", "new", "next", "prev",
            "rollout", "resume", "continue", "retry", "rerun",
        ],
        NOT_SET_BACK,
        &["fork RUN --from tip -n"],
    ),
    noted(
        &[
            "revert", "backout", "amend", "fixup", "squash", "split", "absorb", "metaedit", "stash",
            "shelve", "unsquash", "uncommit",
        ],
        NOT_CHANGED,
        &["fork RUN --from tip -n"],
    ),
    noted(
        &["rm", "delete", "remove", "drop", "abandon", "discard", "destroy"],
        "a run is left out of lists, and its records stay",
        &["runs drop --help"],
    ),
    word(&["clean", "prune", "purge", "repack"], &["gc -n"]),
    word(&["tag", "bookmark", "mark"], &["label NAME OTHER", "label"]),
    word(&["branch", "worktree", "branches"], &["runs --tree"]),
    word(&["copy", "cp", "duplicate"], &["fork RUN --from tip -n"]),
    word(&["status", "st", "health"], &["runs", "verify --all"]),
    word(
        &[
            "push",
            "send",
            "share",
            "publish",
            "upload",
            "bundle",
            "archive",
            "format-patch",
            "save",
            "remote",
        ],
        &["export @ -o run.dnd"],
    ),
    word(&["check", "validate", "audit"], &["verify RUN"]),
    word(&["apply", "am", "patch", "graft"], &["cherrypick --help"]),
    word(&["resolve", "mergetool"], &["conflicts --help"]),
    word(&["interdiff", "range-diff", "cmp"], &["diff RUN OTHER", "diff --help"]),
    word(&["comment", "notes", "remark"], &["note"]),
    word(&["exec", "run", "start"], &["commit --help"]),
    word(&["create", "setup"], &["init --help"]),
    word(&["root", "workspace", "env", "whoami"], &["doctor"]),
    word(&["lint"], &["contract lint --help"]),
    word(&["test"], &["predicate test --help"]),
    word(&["play", "rebuild"], &["replay RUN"]),
    word(&["update", "upgrade"], &["version"]),
    word(&["manual", "docs"], &["help"]),
];

/// Replacement of a flag of another tool.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instead {
    /// The first of these flags that the verb has.
    Flag(&'static [&'static str]),
    /// These words.
    Words(&'static [&'static str]),
    /// The value of the flag alone.
    Value,
    /// Nothing.
    Nothing,
}

/// Flags of other tools. The value after a flag of the first kind is kept.
pub(super) const FLAGS: &[(&[&str], Instead)] = &[
    (&["--author", "--committer", "--user"], Instead::Flag(&["--agent", "--by"])),
    (&["--max-count", "--tail", "--count", "--lines", "--limit"], Instead::Flag(&["-n"])),
    (&["-p", "-u", "--patch", "--verbose-diff"], Instead::Flag(&["--full"])),
    (
        &["--stat", "--name-only", "--name-status", "--shortstat", "-s"],
        Instead::Flag(&["--stat", "--oneline"]),
    ),
    (&["-S", "-G", "-E", "--search", "--filter"], Instead::Flag(&["--grep"])),
    (&["-w", "-f", "--watch"], Instead::Flag(&["--follow", "--file"])),
    (&["--sort-by"], Instead::Flag(&["--sort"])),
    (&["--graph"], Instead::Flag(&["--tree"])),
    (&["-a", "-A", "--all", "--all-namespaces"], Instead::Flag(&["--all"])),
    (
        &["-R", "--repository", "--repo", "--git-dir", "--db", "--namespace", "--context"],
        Instead::Flag(&["--store"]),
    ),
    (&["-m", "--message"], Instead::Flag(&["--reason", "--goal", "--note"])),
    (&["-b", "--branch", "--name"], Instead::Flag(&["--as", "--run"])),
    (&["--debug"], Instead::Flag(&["-v"])),
    (&["--porcelain", "--pretty", "--output-format"], Instead::Words(&["--json"])),
    (&["--no-color", "--no-colour"], Instead::Words(&["--color", "never"])),
    (&["-r", "--revision", "--revisions", "--rev"], Instead::Value),
    (
        &[
            "--cached",
            "--staged",
            "--decorate",
            "--oneline",
            "--no-graph",
            "--force",
            "--yes",
            "-y",
            "--no-verify",
            "--show-labels",
            "--color-words",
            "--word-diff",
            "--git",
            "--no-wait",
        ],
        Instead::Nothing,
    ),
];
