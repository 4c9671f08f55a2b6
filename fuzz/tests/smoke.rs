//! A short run of each target on mutated seeds, without coverage, so that targets cannot rot. `DENDRER_FUZZ_RUNS` says
//! how many mutations each gets, `DENDRER_FUZZ_SEED` which, `DENDRER_FUZZ_TARGET` for one target alone.
//!
//! Seeds are the vectors, a few texts for what vectors do not hold, `regressions/<target>/*`, where each input that ever
//! broke a target is kept, and `corpus/<target>/*`, what fuzzing with coverage found worth keeping.

use std::fs;
use std::path::Path;

use dendrer_object::Value;
use dendrer_object::json::parse_canonical;

/// xorshift64*: the same mutations everywhere.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut data = seeds[self.below(seeds.len())].clone();
        for _ in 0..1 + self.below(4) {
            let at = self.below(data.len() + 1);
            match self.below(6) {
                0 => data.insert(at, self.below(256) as u8),
                1 if at < data.len() => drop(data.remove(at)),
                2 | 3 if at < data.len() => data[at] ^= 1 << self.below(8),
                4 => {
                    // A piece of another seed, as crossing over does.
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(40)).min(other.len());
                    data.splice(at..at, other[from..to].iter().copied());
                }
                _ => {
                    let end = (at + self.below(16)).min(data.len());
                    data.drain(at..end);
                }
            }
        }
        data
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vectors = |file: &str, members: &[&str]| -> Vec<Vec<u8>> {
        let text = fs::read_to_string(here.join("../vectors").join(file)).expect("the vectors are there");
        let cases =
            text.lines().filter_map(|line| parse_canonical(line.trim_end_matches(',').as_bytes()).ok());
        let member = |case: &Value, name: &&str| Some(case.get(name)?.as_str()?.as_bytes().to_vec());
        cases
            .flat_map(|case| members.iter().filter_map(|name| member(&case, name)).collect::<Vec<_>>())
            .collect()
    };
    let own: &[&str] = match target {
        "note" => &["dendrer/00\n3\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", "a+00000000+AQ=="],
        "tile" => &["tile/0/x001/234.p/5", "tile/entries/000", "\u{2}\0\u{1}a\0\u{2}bc"],
        "delta" => &[
            r#"[{"a":[1,2,{"b":3}]},[{"set":"/a/2/b","value":null},{"append":"/a","value":1},{"remove":"/a/0"}]]"#,
            r#"{"type":"plan.update","agent":"a","confidence":0.5,"delta":[{"add":"/n","value":1}],"links":[]}"#,
        ],
        "expression" => &[
            "state.risk <= 0.75 && has(state.deep.a.b)",
            "state.list.exists(x, x > 3) or size(state.text) == 2",
            "sum(state.list) / 2 > 1",
            "words(state.text)[0] in ['three', \"four\"]",
            "!(1.5e3 == -2) ? true : false",
            "state.calls.filter(c, ok(c)).map(c, c.n > 1, merge(c, {'k': [c.n]})) == [] || total > 100",
            "cel.bind(x, state.deep, x.a.transformMap(k, v, v == null)).exists_one(k, k.matches('^b{1,2}$'))",
            "state.list.exists(i, x, i == x) && [1, 2].transformMapEntry(i, v, {string(v): i})['1'] == 0",
            "round(sum(sort(distinct(slice(state.list, -3)))), 2) >= max(1, min([2.5, 3])) - abs(-1)",
            "parse_json(canon([state.deep, words(state.text)]))[1].all(w, lower(strip_prefix(w, 't')) in t.text)",
            "keys(without(pick(state.calls[0], ['n', 'ok']), ['ok'])) + values({'a': range(3)}).map(x, indices(x))",
        ],
        "import" => &[
            r#"[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"a\":[1]}"}}]},{"role":"tool","tool_call_id":"c","content":"Error: no"}]"#,
            r#"{"a":1,"list":[{"role":"assistant","content":"x","tool_calls":[{"id":"c","function":"t","args":{}},{"id":"d","function":"u","args":{"n":2}}]},{"role":"tool","tool_call_id":"d","tool_call":{"id":"d","function":"u","args":{"n":2}},"content":"","error":"bad"}],"b":{"c":null}}"#,
            "{\"role\":\"One (to Two)\",\"content\":\"x\"}\n{\"role\":\"user\",\"name\":\"Two\",\"content\":[{\"type\":\"tool_use\"}]}\n",
            r#"[{"list":[{"role":"user","content":1}]},{"list":[{"role":"user","content":NaN}]}]"#,
        ],
        "map" => &[
            "{\"type\":{\"const\":\"action.result\"},\"intent\":{\"content\":\"/content\"}}\n{\"content\":\"a\"}\n{\"content\":[1]}\n",
            "{\"type\":{\"from\":\"/kind\",\"words\":{\"a\":\"plan.update\"}},\"agent\":\"/who\",\"action\":{\"tool\":\"/t\",\"call_id\":\"/i\"}}\n{\"kind\":\"a\",\"who\":\"x\",\"t\":\"u\"}\n",
            "{\"type\":\"/type\",\"delta\":\"/delta\",\"metrics\":\"/m\",\"confidence\":\"/c\",\"result\":{\"status\":\"/s\"}}\n[{\"type\":\"memory.write\",\"c\":0.5,\"delta\":[{\"set\":\"/a\",\"value\":1}]}]",
        ],
        "body" => &[
            r#"{"agent_id":"a","intent":{"description":"x","n":[1,2.5,{"y":null}]},"result":{"status":"ok"}}"#,
            r#"[{"action":{"tool":"t","params":{"q":"long ago"}},"delta":[],"state":{}},"/action/params","/delta"]"#,
            r#"[{"a/b":{"~":1},"state":{"$float":"NaN"},"action":{"$$x":1}},"/state"]"#,
        ],
        "proof" => &[
            "\u{3}\u{9}\u{4}\0",
            "\u{3}\u{9}\u{4}\u{1}",
            "\u{7}\u{40}\u{21}\0\0\u{1}\u{1}",
            "\u{8}\u{8}\u{3}\u{1}",
        ],
        "directory" => {
            &["\0\0\0\0\0\0", "\u{1}\u{1}\u{9}\u{1}\0\0", "\u{2}\u{4}\0\u{2}\0\u{2}\u{3}\0\u{20}\0\u{1}\0"]
        }
        "snapshot" => &[
            "\u{9}\u{1}",
            "\u{9}\u{1}\u{40}\0\u{1}",
            "\u{5}\0{\"agents\":[],\"check\":\"\",\"counters\":{},\"state\":{}}",
        ],
        "verdicts" => &[
            "\0",
            "\0\u{60}\0\u{1}",
            "\u{1}x",
            "\u{2}{\"id\":\"\",\"judged\":1,\"tick\":3,\"turns\":[[0,\"ok\"]]}",
        ],
        _ => &[],
    };
    let mut found: Vec<Vec<u8>> = own.iter().map(|text| text.as_bytes().to_vec()).collect();
    found.extend(match target {
        "json" => [vectors("json.json", &["door"]), vectors("canonical.json", &["text"])].concat(),
        "header" => vectors("records.json", &["header", "entry"]),
        "bundle" => vectors("bundles.json", &["text"]),
        "note" => [vectors("bundles.json", &["key"]), notes(&vectors("bundles.json", &["text"]))].concat(),
        "delta" => vectors("deltas.json", &["state", "delta"]),
        "segment" => vec![dendrer_fuzz::whole_segment()],
        "module" => modules(here),
        "pack" => vec![fs::read(here.join("../examples/packs/order-desk.yaml")).expect("the pack is there")],
        _ => Vec::new(),
    });
    for kept in ["regressions", "corpus"] {
        let kept = fs::read_dir(here.join(kept).join(target)).into_iter().flatten();
        let mut paths: Vec<_> = kept.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // The order of a directory differs from machine to machine, and mutations draw from this list.
        paths.sort();
        found.extend(paths.iter().filter_map(|path| fs::read(path).ok()));
    }
    found
}

/// The modules of the examples, and one of each thing that modules may have.
fn modules(here: &Path) -> Vec<Vec<u8>> {
    let whole = fs::read_to_string(here.join("../examples/modules/risk.wat")).expect("the module is there");
    let items = [
        "(table $t 2 9 funcref) (elem (i32.const 0) $f) (global $g (mut f64) (f64.const nan)) (func $f)",
        "(func $f (param i64) (result i64 f32) (i64.const 1) (f32.const 2) (br_table 0 0 (i32.const 1)))",
        r#"(data "passive") (elem declare func $f) (func $f (local i32 f64) (drop (ref.func $f)))"#,
    ];
    let bodies = [
        "(loop $l (br_if $l (i32.eqz (memory.grow (i32.const 1))))) (i64.const 4)",
        "(memory.fill (i32.const 9) (i32.const 1) (local.get 1)) (i64.extend_i32_s (local.get 0))",
        "(drop (f64.div (f64.const 0) (f64.const 0))) (if (result i64) (local.get 1) (then (i64.const 4)) (else unreachable))",
    ];
    let made = items.iter().zip(bodies).map(|(item, body)| {
        format!(
            r#"(module {item} (memory (export "memory") 1) (data (i32.const 0) "\"ok\"")
            (func (export "alloc") (param i32) (result i32) (i32.const 64))
            (func (export "evaluate") (param i32 i32) (result i64) {body}))"#
        )
    });
    let tally = fs::read(here.join("../examples/modules/tally.wasm")).expect("the reducer is there");
    let made = std::iter::once(whole).chain(made).map(|text| wat::parse_str(text).expect("it is a module"));
    made.chain([tally]).collect()
}

/// The checkpoints out of bundles.
fn notes(bundles: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let note = |bundle: &Vec<u8>| {
        let last = parse_canonical(bundle.split(|byte| *byte == b'\n').rev().nth(1)?).ok()?;
        Some(last.get("checkpoint")?.as_str()?.as_bytes().to_vec())
    };
    bundles.iter().filter_map(note).collect()
}

#[test]
fn every_target_takes_mutated_seeds() {
    let runs = std::env::var("DENDRER_FUZZ_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000u64);
    let only = std::env::var("DENDRER_FUZZ_TARGET").ok();
    let seed =
        std::env::var("DENDRER_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0x00F0_22ED);
    for (name, target) in dendrer_fuzz::TARGETS {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has seeds");
        seeds.iter().for_each(|seed| target(seed));
        let mut draw = Draw(seed);
        for run in 0..runs {
            let data = draw.mutate(&seeds);
            let went_well = std::panic::catch_unwind(|| target(&data)).is_ok();
            assert!(
                went_well,
                "{name}, mutation {run}; keep it as fuzz/regressions/{name}/: {:?}",
                String::from_utf8_lossy(&data)
            );
        }
    }
}

/// For fuzzing with coverage, which cannot ask this file: `scripts/fuzz.sh` names a directory.
#[test]
fn seeds_are_written_where_asked() {
    let Some(dir) = std::env::var_os("DENDRER_WRITE_SEEDS") else { return };
    for (name, _) in dendrer_fuzz::TARGETS {
        let dir = Path::new(&dir).join(name);
        fs::create_dir_all(&dir).expect("a directory is made");
        for (number, seed) in seeds(name).iter().enumerate() {
            fs::write(dir.join(format!("seed-{number:04}")), seed).expect("a seed is written");
        }
    }
}
