#!/usr/bin/env bash
# Builds the page of `dendrer serve` into web/dist and tests it: types, units, then Chromium against a real server.
#
# Needs: Node 20.19 or later with npm; without it the page is SKIPPED, and the program has a page that says so. Installs: the
# packages of web/package-lock.json, and Debian's Chromium through apt where it runs as root (else set CHROMIUM to its path).
# The program is DENDRER, else target/release/dendrer or target/debug/dendrer; if there is none it is built, with the page in it.
#
#   scripts/web.sh          everything
#   scripts/web.sh build    web/dist alone: run it before cargo, which embeds the files
#   scripts/web.sh units    web/dist, types and units: what needs neither the program nor a browser
#   scripts/web.sh picture  docs/pictures/serve.png, the picture of docs/serve.md; a full run takes it to web/tests/shots
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

if ! command -v node >/dev/null || ! command -v npm >/dev/null || ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)'; then
  printf '\n**** SKIPPED: the page of dendrer serve was neither built nor tested: Node 20.19 or later is missing ****\n\n' >&2
  exit 0
fi

say "packages of the page"
cd web
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
fi

say "build"
npm run --silent build
[ "${1:-}" = build ] && exit 0

if [ "${1:-}" != picture ]; then
  say "types and units"
  npm run --silent check
  npm run --silent unit
fi
[ "${1:-}" = units ] && exit 0

say "the program"
cd ..
if [ -z "${DENDRER:-}" ]; then
  for found in target/release/dendrer target/debug/dendrer; do
    if [ -x "$found" ]; then
      DENDRER="$PWD/$found"
      break
    fi
  done
fi
if [ -z "${DENDRER:-}" ]; then
  cargo build --quiet -p dendrer-cli
  DENDRER="$PWD/target/debug/dendrer"
fi
export DENDRER
"$DENDRER" --version

say "the browser"
export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null
  else
    echo "please install Chromium, or set CHROMIUM to its path" >&2
    exit 1
  fi
fi

cd web
if [ "${1:-}" = picture ]; then
  say "the picture of docs/serve.md"
  npm run --silent picture
  exit 0
fi

say "documents and screens"
npm run --silent types
npm run --silent browser
npm run --silent picture -- tests/shots/serve.png
