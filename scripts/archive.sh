#!/usr/bin/env bash
# Tries the archive of `xtask release`: packs a program twice, which gives the same bytes, unpacks it where no Rust and no Node are in
# PATH, and runs the tour that `dendrer demo` prints.
#
#   scripts/archive.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one two; do
  cargo run --quiet -p xtask -- release --program "$1" "$work/$copy" >"$work/$copy.out"
done
cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"
(cd "$work/one" && sha256sum --check --quiet SHA256SUMS)

mkdir "$work/empty"
tar -xzf "$work"/one/dendrer-*.tar.gz -C "$work"
cp "$work"/dendrer-*/dendrer "$work/empty/dendrer"
for found in man/dendrer.1 man/dendrer-bisect.1 completions/dendrer.bash LICENSE-MIT LICENSE-APACHE README.md; do
  [ -s "$work"/dendrer-*/"$found" ] || { echo "the archive has no $found" >&2; exit 1; }
done

# Nothing but the program and the shell.
cd "$work/empty"
begin=$(date +%s%N)
env -i PATH="$work/empty" HOME="$work/home" "$BASH" -c '
  set -u
  dendrer demo tour >out || exit 1
  cd tour
  ended=0
  while read -r line; do
    case $line in "dendrer "*) eval "$line" >/dev/null 2>&1; code=$?; ended=$((ended + 1)); echo "exit $code: $line" ;; esac
  done < <(while read -r line; do [ -n "${on-}" ] && echo "$line"; case $line in "a tour"*) on=1 ;; esac; done <../out)
  [ "$ended" = 5 ] || { echo "the tour has $ended commands, not 5"; exit 1; }'
took=$((($(date +%s%N) - begin) / 1000000))
echo "the tour took $took ms"
[ "$took" -lt 5000 ] || { echo "that is more than 5 s" >&2; exit 1; }
