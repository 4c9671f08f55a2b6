#!/usr/bin/env bash
# Installs the peers that recording is measured beside, then measures. What is measured: docs/benchmarks.md.
#
# Needs: cargo, and python3 with venv. Installs: the packages of crates/dendrer-cli/benches/peers/requirements.txt into
# target/peers. STEPS, TURNS, ROUNDS and BENCH_DIR are as crates/dendrer-cli/benches/peers.rs says.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=crates/dendrer-cli/benches/peers/requirements.txt
if ! cmp -s "$requirements" target/peers/requirements.txt; then
  python3 -m venv target/peers
  target/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" target/peers/requirements.txt
fi

echo "== machine"
uname -sr
grep -m1 'model name' /proc/cpuinfo || true
echo "$(nproc) cores, SHA extensions: $(grep -qw sha_ni /proc/cpuinfo && echo yes || echo no)"
uptime

# How often each peer asks the disk to keep what it wrote: counted, not believed.
if command -v strace >/dev/null; then
  echo "== syncs of each peer for 100 steps and what surrounds them"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  line='{"action":{"params":{"prompt":"hello"}},"result":{"output":"hello"}}'
  for _ in $(seq 100); do echo "$line"; done >"$scratch/steps"
  for peer in agentrr langgraph opentine retrial; do
    mkdir "$scratch/$peer"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=crates/dendrer-cli/benches/peers strace -f -o "$scratch/calls" -e trace=fsync,fdatasync \
      target/peers/bin/python -m "with_$peer" steps "$scratch/steps" "$scratch/$peer" >/dev/null
    echo "$peer $(grep -cE 'f(data)?sync\(' "$scratch/calls" || true)"
  done
fi

echo "== measured"
cargo bench --quiet -p dendrer-cli --bench peers
