#!/bin/sh
# What the dendrer paper (4.8) promises to measure, measured again. Prints one line for each figure of README.md.
# The published runs are in ../shared/corpus; without them the lines about real runs are SKIPPED.
set -eu
cd "$(dirname "$0")/../.."
show() {
    # The tests print their figures; everything else they print is about how they ran.
    grep -E '^ *(avc:|deep:|hostile:|impure:|SKIPPED|.*(PASS|FAIL) \[)' || true
}
echo "== onsets of synthetic runs (D-125)"
cargo nextest run -p dendrer --no-capture -E 'test(a_hundred_runs_of_64_ticks) + test(every_onset_of_every_length_is_found) + test(bisect_finds_what_looking_at_every_tick_finds)' 2>&1 | show
echo "== imports against an independent statement of the rules (D-127)"
DENDRER_DEEP=1 cargo nextest run -p dendrer --no-capture --test imports 2>&1 | show
echo "== predicates that are not pure (D-128)"
cargo nextest run -p dendrer-wasm --no-capture --test impure 2>&1 | show
echo "== noise, and the chain against labels (D-129)"
cargo nextest run -p dendrer --no-capture --test noise 2>&1 | show
cargo nextest run -p dendrer-cli --no-capture -E 'test(corpus::)' 2>&1 | show
