#!/usr/bin/env bash
# Builds the wheel once, without link time optimization, installs it and runs the tests of the Python package.
#
# Needs: cargo, and python3 of 3.10 or later with venv. Everything else goes into target/wheel, from PyPI. With Node 20 or
# later, libraries of models for it go into crates/dendrer-python/tests/clients/node/node_modules, from npm.
# Arguments are passed on to pytest. With `--bench DIR` first, the wheel is built as `pip install .` builds it, and
# eval/python/bench.py is run on the disk of DIR instead of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="$PWD/target/wheel"
python="$venv/bin/python"

"$python" -c 'import sys' 2>/dev/null || python3 -m venv "$venv"
if ! "$python" -c 'import maturin, pytest, langgraph.checkpoint.conformance, langgraph.checkpoint.sqlite, pydantic, Crypto, mypy, pyright, abi3audit, nbformat, wcwidth, openai, anthropic, google.genai, brotli, backports.zstd, mcp' 2>/dev/null; then
  "$python" -m pip install --quiet --disable-pip-version-check \
    'maturin==1.16.0' 'pytest>=9,<10' 'pydantic>=2,<3' 'pycryptodome>=3' 'mypy==2.4.1' 'pyright[nodejs]==1.1.414' 'abi3audit==0.0.26' 'nbformat>=5' 'wcwidth>=0.9,<1' \
    'mcp==2.3.0' 'openai==3.57.0' 'anthropic==2.14.0' 'google-genai==3.6.1' 'brotli==1.2.1' 'backports.zstd>=1,<2' \
    'langgraph>=1.2,<1.3' 'langgraph-checkpoint-sqlite>=3.1,<3.2' 'langgraph-checkpoint-conformance==0.0.2'
fi

clients=crates/dendrer-python/tests/clients/node
if ! command -v npm >/dev/null; then
  echo "SKIPPED: no npm, so the libraries of models for Node are not tried"
elif ! [ "$clients/node_modules/.package-lock.json" -nt "$clients/package-lock.json" ]; then
  npm ci --prefix "$clients" --no-audit --no-fund --ignore-scripts --loglevel=error
fi

rm -rf target/wheels
if [ "${1-}" = --bench ]; then lto=thin; else lto=off; fi
CARGO_PROFILE_RELEASE_LTO=$lto "$venv/bin/maturin" build --release --quiet --interpreter "$python" --out target/wheels
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/*.whl

if [ "${1-}" = --bench ]; then exec "$python" eval/python/bench.py "${2:-/dev/shm}"; fi

"$venv/bin/abi3audit" --strict --summary target/wheels/*.whl
"$venv/bin/mypy" --strict -p dendrer
"$venv/bin/mypy" --strict crates/dendrer-python/tests eval/python/*.py
"$venv/bin/pyright" --pythonpath "$python" -p pyproject.toml crates/dendrer-python/python/dendrer eval/python
export PATH="$venv/bin:$PATH"
"$python" -m pytest -q -p no:cacheprovider crates/dendrer-python/tests eval/python "$@"
