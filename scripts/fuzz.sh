#!/usr/bin/env bash
# Fuzzes targets with coverage, one after the other: scripts/fuzz.sh SECONDS [TARGET ...]. SECONDS is for each of them.
#
# What is found is kept in target/fuzz/<target>; it begins with the seeds, fuzz/corpus and fuzz/regressions. An input that
# breaks a target stands in fuzz/artifacts/<target>, and the run fails at its end. `scripts/fuzz.sh min [TARGET ...]` keeps
# the smallest set with the same coverage, and a fifth of that in fuzz/corpus: every fifth by size, up to 60 KB for a target.
#
# Needs cargo-fuzz. The targets have no unsafe code of their own, so they run without a sanitizer, three times as fast;
# DENDRER_SANITIZER=address runs them with one.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:?how many seconds for each target, or min}"
shift
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
export RUSTC_BOOTSTRAP=1
target="${CARGO_TARGET_DIR:-$PWD/target}"
grown="$target/fuzz"
host="$(rustc -vV | sed -n 's/^host: //p')"
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')
fi

# Every seed that the short run without coverage has.
mkdir -p "$grown"
(cd fuzz && DENDRER_WRITE_SEEDS="$grown" CARGO_TARGET_DIR="$target" cargo test --quiet --test smoke seeds_are_written >/dev/null)
(cd fuzz && CARGO_TARGET_DIR="$target" cargo fuzz build -s "${DENDRER_SANITIZER:-none}" --features libfuzzer)

failed=0
total=0
for name in "${targets[@]}"; do
  mkdir -p "$grown/$name" "fuzz/corpus/$name" "fuzz/artifacts/$name"
  program="$target/$host/release/$name"
  if [ "$seconds" = min ]; then
    small="$(mktemp -d)"
    "$program" -merge=1 -max_len=4096 "$small" "$grown/$name" "fuzz/corpus/$name" >/dev/null 2>&1
    rm -f "fuzz/corpus/$name/"*
    # Of every size, smallest first, until there is no room.
    size=0
    while read -r bytes path; do
      size=$((size + bytes))
      [ "$size" -le 60000 ] || break
      cp "$path" "fuzz/corpus/$name/"
    done < <(find "$small" -type f -printf '%s %p\n' | sort -n | awk 'NR % 5 == 1')
    rm -rf "$small"
    printf '%-12s %6d inputs kept\n' "$name" "$(find "fuzz/corpus/$name" -type f | wc -l)"
    continue
  fi
  log="$target/fuzz-$name.log"
  code=0
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="fuzz/artifacts/$name/" "$grown/$name" "fuzz/corpus/$name" >"$log" 2>&1 || code=$?
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)"
  total=$((total + ${runs:-0}))
  printf '%-12s %12s executions  %s\n' "$name" "${runs:-0}" "$([ "$code" = 0 ] && echo ok || echo "FAILED, see $log")"
  [ "$code" = 0 ] || failed=1
done
[ "$seconds" = min ] || printf '%-12s %12s executions\n' all "$total"
exit "$failed"
