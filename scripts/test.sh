#!/usr/bin/env bash
# Installs what the tests need and is not there, then runs every test. Works on a fresh machine with cargo.
#
# Needs: cargo with rustc 1.89 or later, and Node 20.19 or later for the page of `serve` (without it the page is SKIPPED).
# Installs: a C compiler, python3 and PostgreSQL through apt where it runs as root on Debian or Ubuntu (without it the tests
# of stores on a server are SKIPPED; they start a server of their own, as the user postgres); the packages of the page from npm
# into web/node_modules; the Python packages `cryptography`, `PyYAML` and `carl-core` into target/python, and those of
# scripts/python.sh into target/wheel; cargo-nextest through cargo; Debian's Chromium as scripts/web.sh says. Touches nothing
# else.
set -euo pipefail
cd "$(dirname "$0")/.."

# A clean clone is compiled once: what rustc keeps for the next compilation took 3 of 14 GB.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

say() { printf '\n== %s\n' "$*"; }

say "what the tests need"
missing=()
command -v cc >/dev/null || missing+=(build-essential)
command -v python3 >/dev/null || missing+=(python3)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
  else
    echo "please install: ${missing[*]}" >&2
    exit 1
  fi
fi

# Tests of stores on a server: 15 or later, started by each test in a directory of its own.
has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }
if ! has_postgres && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql
fi
if has_postgres; then
  export DENDRER_POSTGRES=must
else
  echo "SKIPPED: the tests of stores on a server need PostgreSQL 15 or later"
fi

# The second reader of the format is written in Python and needs one package for Ed25519. The environments of one published
# data set are YAML 1.1.
if [ -z "${DENDRER_PYTHON:-}" ]; then
  export DENDRER_PYTHON="$PWD/target/python/bin/python"
  if ! "$DENDRER_PYTHON" -c 'import cryptography, yaml, carl_core' 2>/dev/null; then
    python3 -m venv target/python
    "$DENDRER_PYTHON" -m pip install --quiet --disable-pip-version-check 'cryptography>=42' 'PyYAML>=6' 'carl-core==0.2.0'
  fi
fi
"$DENDRER_PYTHON" -c 'import cryptography, sys; print("python", sys.version.split()[0], "cryptography", cryptography.__version__)'

# Exports as Parquet are read by a second reader.
if "$DENDRER_PYTHON" -c 'import duckdb' 2>/dev/null ||
  "$DENDRER_PYTHON" -m pip install --quiet --disable-pip-version-check 'duckdb==2.0.1'; then
  export DENDRER_DUCKDB=must
else
  echo "SKIPPED: the test of exports with DuckDB needs the package duckdb"
fi

command -v cargo-nextest >/dev/null || cargo install --locked cargo-nextest

say "example modules"
timeout 600 scripts/modules.sh || echo "SKIPPED: the example modules were not built in time"
export DENDRER_MODULES="$PWD/target/modules"

say "the page of serve"
scripts/web.sh units

say "tests"
# The same cases every time, so that a failure is of the change that is tested. `just soak` draws new ones.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}"
cargo nextest run --workspace --no-fail-fast "$@"

say "orders of threads"
SHUTTLE_RANDOM_SEED=1 cargo nextest run -p dendrer-store --features schedules,conformance,faulty --test schedules

say "modules in both engines"
# The compiler of modules wants a newer rustc than everything else.
if [ -z "${DENDRER_DEEP:-}" ]; then
  echo "SKIPPED: the second engine takes five minutes to compile; DENDRER_DEEP=1 runs it"
elif printf '1.95\n%s\n' "$(rustc --version | cut -d' ' -f2)" | sort -VC; then
  cargo nextest run -p dendrer-wasm --features wasmtime --no-fail-fast
else
  echo "SKIPPED: the second engine needs rustc 1.95 or later"
fi

say "the Python package"
scripts/python.sh

say "the page of serve in Chromium, on the release program"
# Without link time optimization, as the wheel was built: what both need is compiled once.
CARGO_PROFILE_RELEASE_LTO=off cargo build --quiet --release -p dendrer-cli
DENDRER="${CARGO_TARGET_DIR:-$PWD/target}/release/dendrer" timeout 1500 scripts/web.sh
say "the release program has no stores on a server, and says so"
{ "${CARGO_TARGET_DIR:-$PWD/target}/release/dendrer" runs --store postgres://h/d/n 2>&1 || true; } | grep -q E0818
say "the archive of a release"
scripts/archive.sh "${CARGO_TARGET_DIR:-$PWD/target}/release/dendrer"

# Nothing below runs an optimized build.
rm -rf "${CARGO_TARGET_DIR:-target}/release"

say "a program of its own that uses the library"
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" cargo test --quiet --manifest-path examples/embed/Cargo.toml
cargo test --quiet -p dendrer --features serde_json --lib bridge

say "examples in the documentation"
cargo test --workspace --doc --quiet

say "fuzz targets, a short run of each on mutated seeds"
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" cargo test --quiet --manifest-path fuzz/Cargo.toml

say "tidy"
cargo run --quiet -p xtask -- tidy

say "all tests passed"
