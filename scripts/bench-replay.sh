#!/usr/bin/env bash
# Installs Temporal's SDK, then replays the same calls by its replayer and by dendrer: docs/graphs.md, docs/benchmarks.md.
#
# Needs: cargo, and python3 with venv. Installs: temporalio into target/temporal. EDGES is how many calls are replayed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! target/temporal/bin/python -c 'import temporalio' 2>/dev/null; then
  python3 -m venv target/temporal
  target/temporal/bin/python -m pip install --quiet --disable-pip-version-check temporalio==1.35.0
fi
cargo build --release --quiet
target/temporal/bin/python eval/replay/compare.py "$PWD/target/release/dendrer" "${EDGES:-10000}" 2>/dev/null
