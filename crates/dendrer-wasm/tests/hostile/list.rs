//! Predicates that would look at the world, remember something, or take without end.

use std::fmt::Write as _;

/// What must become of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// It is refused, with a code, before anything of it runs.
    Refused,
    /// It is taken, and each call of it is ended by a limit.
    Ended,
    /// It is taken and does what it likes to itself: it says the same of the same state all the same.
    Harmless,
}

/// One predicate.
pub(crate) struct Case {
    /// What it would do: clock, random, environment, file, socket, memory, loop, float, size or malformed.
    pub(crate) class: &'static str,
    /// What must become of it.
    pub(crate) fate: Fate,
    /// What it is.
    pub(crate) asked: Asked,
}

/// An expression or the bytes of a module.
pub(crate) enum Asked {
    /// An expression.
    Expr(String),
    /// A module, and how it came about.
    Module(Vec<u8>, String),
}

impl Case {
    /// What a message calls it.
    pub(crate) fn name(&self) -> String {
        match &self.asked {
            Asked::Expr(text) => text.chars().take(60).collect(),
            Asked::Module(_, name) => name.chars().take(200).collect(),
        }
    }
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    expressions(&mut cases);
    imports(&mut cases);
    remembering(&mut cases);
    endless(&mut cases);
    floats(&mut cases);
    oversized(&mut cases);
    malformed(&mut cases);
    cases
}

fn expressions(cases: &mut Vec<Case>) {
    let texts: [(&str, &[&str]); 7] = [
        (
            "clock",
            &[
                "now() > timestamp('2020-01-01T00:00:00Z')",
                "time.now() > 5",
                "clock() > 0.0",
                "elapsed() > duration('1s')",
                "now().getSeconds() > 5",
                "sysdate > state.at",
            ],
        ),
        ("random", &["random() > 0.5", "rand(1, 6) == 6", "uuid() == state.id", "math.random() < 0.1"]),
        (
            "environment",
            &[
                "env('HOME') == '/root'",
                "getenv('PATH') != ''",
                "env.HOME == ''",
                "process.env.X == '1'",
                "$HOME == ''",
            ],
        ),
        (
            "file",
            &[
                "open('/etc/passwd') != ''",
                "read_file('x') == ''",
                "file('/dev/random').size() > 0",
                "import('os')",
            ],
        ),
        (
            "socket",
            &[
                "http.get('http://localhost') == ''",
                "fetch('x').ok",
                "connect('127.0.0.1', 80)",
                "dns('localhost') != ''",
            ],
        ),
        (
            "memory",
            &[
                "state.x = 1",
                "x := state.x",
                "state.n++ > 3",
                "set(state.x, 1)",
                "global.seen == 1",
                "cache(state.x) > 1",
            ],
        ),
        ("loop", &["while (true) {}", "for (;;) {}", "loop(true)", "(f)(f)", "state.items.map(x)"]),
    ];
    for (class, texts) in texts {
        for text in texts {
            cases.push(Case { class, fate: Fate::Refused, asked: Asked::Expr((*text).to_owned()) });
        }
    }
    let large = [
        format!("state.x > {}", "1".repeat(10 << 20)),
        format!("{}true{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}true", "!".repeat(60_000)),
        vec!["state.x > 1"; 20_000].join(" && "),
        "[".repeat(30_000),
    ];
    for text in large {
        cases.push(Case { class: "size", fate: Fate::Refused, asked: Asked::Expr(text) });
    }
    let list = vec!["1"; 200].join(",");
    let deep = format!("[{list}].all(a, [{list}].all(b, [{list}].all(c, a + b + c > 0)))");
    cases.push(Case { class: "loop", fate: Fate::Ended, asked: Asked::Expr(deep) });
}

fn push(cases: &mut Vec<Case>, class: &'static str, fate: Fate, wat: String) {
    let bytes = wat::parse_str(&wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    cases.push(Case { class, fate, asked: Asked::Module(bytes, wat) });
}

/// A module that is as it should be, but for what is put into it.
pub(crate) fn module(items: &str, body: &str) -> String {
    format!(
        r#"(module {items} (memory (export "memory") 1) (data (i32.const 0) "\"ok\"\"violation\"")
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "evaluate") (param i32 i32) (result i64) {body}))"#
    )
}

const OK: &str = "(i64.const 4)";

fn imports(cases: &mut Vec<Case>) {
    let wasi = "wasi_snapshot_preview1";
    let functions: [(&str, &[(&str, &str)]); 5] = [
        (
            "clock",
            &[
                (wasi, "clock_time_get"),
                (wasi, "clock_res_get"),
                ("env", "now"),
                ("env", "Date.now"),
                ("wasi:clocks/wall-clock@0.2.0", "now"),
                (wasi, "poll_oneoff"),
            ],
        ),
        (
            "random",
            &[
                (wasi, "random_get"),
                ("env", "seed"),
                ("env", "Math.random"),
                ("wasi:random/random@0.2.0", "get-random-u64"),
            ],
        ),
        (
            "environment",
            &[
                (wasi, "environ_get"),
                (wasi, "environ_sizes_get"),
                (wasi, "args_get"),
                (wasi, "proc_exit"),
                ("env", "getenv"),
                (wasi, "sched_yield"),
            ],
        ),
        (
            "file",
            &[
                (wasi, "fd_read"),
                (wasi, "fd_write"),
                (wasi, "path_open"),
                (wasi, "fd_prestat_get"),
                ("env", "open"),
            ],
        ),
        (
            "socket",
            &[
                (wasi, "sock_accept"),
                (wasi, "sock_recv"),
                (wasi, "sock_send"),
                ("env", "connect"),
                ("wasi:http/outgoing-handler@0.2.0", "handle"),
            ],
        ),
    ];
    for (class, names) in functions {
        for (from, name) in names {
            let item = format!(r#"(import "{from}" "{name}" (func (result i32)))"#);
            push(cases, class, Fate::Refused, module(&item, OK));
        }
    }
    for item in [
        r#"(import "env" "state" (global (mut i32)))"#,
        r#"(import "env" "shared" (global i64))"#,
        r#"(import "env" "table" (table 1 funcref))"#,
        r#"(import "" "" (func))"#,
        r#"(import "env" "abort" (func (param i32 i32 i32 i32)))"#,
    ] {
        push(cases, "memory", Fate::Refused, module(item, OK));
    }
    let given = r#"(module (import "env" "memory" (memory 1)) (export "memory" (memory 0))
        (func (export "alloc") (param i32) (result i32) (i32.const 0))
        (func (export "evaluate") (param i32 i32) (result i64) (i64.const 0)))"#;
    push(cases, "memory", Fate::Refused, given.to_owned());
}

fn remembering(cases: &mut Vec<Case>) {
    let flip = "(select (i64.const 4) (i64.const 0x40000000b) (i32.eqz (i32.and (i32.const 1) %)))";
    let global = "(global $n (mut i32) (i32.const 0))";
    let counted = flip.replace('%', "(i32.sub (global.get $n) (i32.const 1))");
    let body = format!("(global.set $n (i32.add (global.get $n) (i32.const 1))) {counted}");
    push(cases, "memory", Fate::Harmless, module(global, &body));
    let exported = r#"(global $n (export "n") (mut i32) (i32.const 0))"#;
    push(cases, "memory", Fate::Harmless, module(exported, &body));
    let kept = flip.replace('%', "(i32.sub (i32.load (i32.const 2048)) (i32.const 1))");
    let store = "(i32.store (i32.const 2048) (i32.add (i32.load (i32.const 2048)) (i32.const 1)))";
    push(cases, "memory", Fate::Harmless, module("", &format!("{store} {kept}")));
    let grown = format!("(drop (memory.grow (i32.const 1))) {}", flip.replace('%', "(memory.size)"));
    push(cases, "memory", Fate::Harmless, module("", &grown));
    let table = "(table $t 2 2 funcref) (elem declare func $f) (func $f)";
    let set = "(table.set $t (i32.const 0) (ref.func $f))";
    let seen = "(if (i32.eqz (ref.is_null (table.get $t (i32.const 0)))) (then unreachable))";
    push(cases, "memory", Fate::Harmless, module(table, &format!("{seen} {set} {OK}")));
    let dropped = format!("(data.drop $d) {OK}");
    push(cases, "memory", Fate::Harmless, module(r#"(data $d "x")"#, &dropped));
    // What nobody wrote is zero, at every call.
    let unwritten = flip.replace('%', "(i32.load (i32.const 40000))");
    push(cases, "memory", Fate::Harmless, module("", &unwritten));
    let shared =
        module("", OK).replace("(memory (export \"memory\") 1)", "(memory (export \"memory\") 1 1 shared)");
    push(cases, "memory", Fate::Refused, shared);
}

fn endless(cases: &mut Vec<Case>) {
    push(cases, "loop", Fate::Refused, module("(func $s (loop $l (br $l))) (start $s)", OK));
    push(cases, "loop", Fate::Refused, module("(func $s) (start $s)", OK));
    push(
        cases,
        "clock",
        Fate::Refused,
        module("(global $g (mut i32) (i32.const 0)) (func $s (global.set $g (i32.const 1))) (start $s)", OK),
    );
    for (items, body) in [
        ("", "(loop $l (br $l)) (i64.const 4)"),
        ("", "(loop $l (drop (i32.load (i32.const 0))) (br $l)) (i64.const 4)"),
        ("", "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l)) (i64.const 4)"),
        ("", "(loop $l (memory.copy (i32.const 0) (i32.const 9) (i32.const 65000)) (br $l)) (i64.const 4)"),
        ("(func $f (result i64) (call $f))", "(call $f)"),
        (
            "(func $f (param i64) (result i64) (i64.add (local.get 0) (call $f (local.get 0))))",
            "(call $f (i64.const 1))",
        ),
        (
            "(func $a (result i64) (call $b)) (func $b (result i64) (i64.add (i64.const 1) (call $a)))",
            "(call $a)",
        ),
        (
            "(type $t (func (result i64))) (table funcref (elem $f)) (func $f (type $t) (call_indirect (type $t) (i32.const 0)))",
            "(call $f)",
        ),
        ("", "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) (i64.const 4)"),
        ("", "(drop (memory.grow (i32.const 60000))) (i64.const 4)"),
        (
            "(table $t 1 funcref)",
            "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1))) (br $l)) (i64.const 4)",
        ),
    ] {
        push(cases, "loop", Fate::Ended, module(items, body));
    }
    let alloc = module("", OK).replace("(i32.const 1024)", "(loop $l (br $l)) (i32.const 0)");
    push(cases, "loop", Fate::Ended, alloc);
    // 2 to the power of 60 calls, no deeper than 60.
    let mut doubling = "(func $f0 (result i64) (i64.const 4))".to_owned();
    for n in 1..60 {
        let _ = write!(doubling, "(func $f{n} (result i64) (drop (call $f{0})) (call $f{0}))", n - 1);
    }
    push(cases, "loop", Fate::Ended, module(&doubling, "(call $f59)"));
    let locals = format!("(func $f (local {}) (call $f))", "i64 ".repeat(20_000));
    push(cases, "loop", Fate::Ended, module(&locals, "(call $f) (i64.const 4)"));
}

fn floats(cases: &mut Vec<Case>) {
    // The sign of a NaN differs from processor to processor; here it may not show.
    for made in [
        "(f64.div (f64.const 0) (f64.const 0))",
        "(f64.sqrt (f64.const -1))",
        "(f64.add (f64.const inf) (f64.const -inf))",
        "(f64.mul (f64.const 0) (f64.const inf))",
    ] {
        let body = format!(
            "(select (i64.const 4) (i64.const 0x40000000b) (i64.ge_s (i64.reinterpret_f64 {made}) (i64.const 0)))"
        );
        push(cases, "float", Fate::Harmless, module("", &body));
    }
    for body in [
        "(drop (i32.trunc_f64_u (f64.const nan))) (i64.const 4)",
        "(drop (i32.trunc_f32_s (f32.const 3e38))) (i64.const 4)",
        "(drop (i64.trunc_sat_f64_s (f64.const nan))) (i64.const 4)",
    ] {
        push(cases, "float", Fate::Harmless, module("", body));
    }
    for vectors in [
        "(drop (v128.const i64x2 0 0)) (i64.const 4)",
        "(drop (f32x4.relaxed_madd (v128.const i64x2 0 0) (v128.const i64x2 0 0) (v128.const i64x2 0 0))) (i64.const 4)",
    ] {
        push(cases, "float", Fate::Refused, module("", vectors));
    }
}

fn oversized(cases: &mut Vec<Case>) {
    for memory in ["65536", "257", "1 1) (memory 1", "i64 1", "0) (memory 65536"] {
        let wat = module("", OK)
            .replace("(memory (export \"memory\") 1)", &format!("(memory (export \"memory\") {memory})"));
        push(cases, "size", Fate::Refused, wat);
    }
    for item in [
        "(table 10001 funcref)".to_owned(),
        "(table 4000000000 funcref)".to_owned(),
        "(table 1 funcref)".repeat(9),
        format!(r#"(data "{}")"#, "x".repeat(1 << 20)),
        "(func)".repeat(10_001),
        "(global i32 (i32.const 0))".repeat(10_001),
        r#"(data "")"#.repeat(10_001),
        format!("(func (param {}))", "i32 ".repeat(65)),
        format!("(func (local {}))", "i64 ".repeat(40_000)).repeat(3),
        format!("(func {})", "nop ".repeat(250_001)),
        format!("(func {}{})", "block ".repeat(1_001), "end ".repeat(1_001)),
        format!("(func (br_table {}(i32.const 0)))", "0 ".repeat(250_001)),
        "(tag)".to_owned(),
    ] {
        push(cases, "size", Fate::Refused, module(&item, OK));
    }
    // Segments that do not fit are known before the first call.
    for item in [
        r#"(data (i32.const -1) "x")"#,
        r#"(data (i32.const 65536) "x")"#,
        "(table 1 funcref) (elem (i32.const 1) $f) (func $f)",
    ] {
        push(cases, "size", Fate::Refused, module(item, OK));
    }
}

fn malformed(cases: &mut Vec<Case>) {
    let good = wat::parse_str(module("", OK)).expect("it is one");
    let mut bytes = |name: &str, bytes: Vec<u8>| {
        let asked = Asked::Module(bytes, name.to_owned());
        cases.push(Case { class: "malformed", fate: Fate::Refused, asked });
    };
    bytes("nothing", Vec::new());
    bytes("four bytes", good[..4].to_vec());
    bytes("a head alone", good[..8].to_vec());
    bytes("without its last byte", good[..good.len() - 1].to_vec());
    bytes("twice", [good.clone(), good.clone()].concat());
    bytes("version 2", [&good[..4], &[2, 0, 0, 0], &good[8..]].concat());
    bytes("a component", b"\0asm\x0d\0\x01\0".to_vec());
    bytes("text", module("", OK).into_bytes());
    bytes("an ELF", [b"\x7fELF".to_vec(), vec![0; 100]].concat());
    bytes("a section of 4 GB", [&good[..8], &[1, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat());
    bytes("a section without end", [&good[..8], &[1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]].concat());
    bytes("4 billion types", [&good[..8], &[1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat());
    bytes("4 billion functions", [&good[..8], &[3, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat());
    bytes("an unknown section", [good.clone(), vec![63, 0]].concat());
    for (name, wat) in [
        ("no exports", r#"(module (memory 1))"#),
        (
            "alloc of another kind",
            r#"(module (memory (export "memory") 1) (func (export "alloc")) (func (export "evaluate") (param i32 i32) (result i64) (i64.const 0)))"#,
        ),
        (
            "evaluate of another kind",
            r#"(module (memory (export "memory") 1) (func (export "alloc") (param i32) (result i32) (i32.const 0)) (func (export "evaluate") (result i64) (i64.const 0)))"#,
        ),
        (
            "a memory that is a function",
            r#"(module (func (export "memory")) (func (export "alloc") (param i32) (result i32) (i32.const 0)) (func (export "evaluate") (param i32 i32) (result i64) (i64.const 0)))"#,
        ),
    ] {
        bytes(name, wat::parse_str(wat).expect("it is text of a module"));
    }
}
