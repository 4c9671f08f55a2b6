# What people run by hand. CI runs `scripts/test.sh` alone.

# Lists what there is.
default:
    @just --list

# Everything a change must pass: tests, formatting, lints, licences.
check: test lint licences

# Installs what is missing and runs every test.
test *ARGS:
    scripts/test.sh {{ARGS}}

# Every property on new random cases, many of them: just soak 20000
soak CASES="5000":
    PROPTEST_CASES={{CASES}} cargo nextest run --workspace --no-fail-fast -E 'binary(it) | kind(lib)'

# Formatting and lints, with warnings as errors.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Licences, bans and sources of dependencies.
licences:
    cargo deny check licenses bans sources

# Published advisories about dependencies, or NOT CHECKED where their database cannot be had.
advisories:
    scripts/advisories.sh

# The rules that no compiler holds.
tidy:
    cargo run --quiet -p xtask -- tidy

# Adds new cases to vectors/*.json. Never changes one.
vectors:
    cargo run --quiet -p xtask -- vectors

# The figures of the recorder and the verifier; `just bench fold` is a part of them. Then predicates, imports and questions about a long run.
bench *ARGS:
    cargo bench -p dendrer --bench figures -- {{ARGS}}
    cargo bench -p dendrer --bench writers
    cargo bench -p dendrer --bench redact
    cargo bench -p dendrer-kernel --bench expr
    cargo bench -p dendrer-wasm --bench modules
    cargo bench -p dendrer-wire --bench import
    cargo bench -p dendrer-cli --bench questions
    cargo bench -p dendrer-cli --bench sizes

# Recording beside the tools that others use for it, in one run: installs them into target/peers.
bench-peers:
    scripts/bench-peers.sh

# Fuzzes one target with coverage, for some seconds: just fuzz json 60
fuzz TARGET SECONDS="60":
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run {{TARGET}} --features libfuzzer -- -max_total_time={{SECONDS}}

# Fuzzes every target with coverage, for some seconds each: just fuzz-all 60
fuzz-all SECONDS="60":
    scripts/fuzz.sh {{SECONDS}}

# Keeps a part of the smallest inputs with the same coverage in fuzz/corpus.
fuzz-min *TARGETS:
    scripts/fuzz.sh min {{TARGETS}}

# Every fault many times, about an hour, and one table; rows by name: just deep kill power-loss
deep *ROWS:
    cargo run --quiet -p xtask -- deep {{ROWS}}
