#!/bin/bash
# Builds the fuzz targets with clang and libFuzzer, and runs each of them for some time, starting from its corpus.
# usage: scripts/fuzz.sh [--seconds N] [--build DIR] [TARGET...]     a target is a file of tests/fuzz, without .cpp
# Exits with 1 at the first finding; what caused it lies in DIR/findings. New inputs stay in DIR/corpus, not in the source tree.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
seconds=60 build=$root/build/fuzz targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --*) echo "usage: scripts/fuzz.sh [--seconds N] [--build DIR] [TARGET...]" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
if [ ${#targets[@]} -eq 0 ]; then
  for source in "$root"/tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 -DTILEWRIGHT_FUZZ=ON > "$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --target "${targets[@]/#/fuzz_}" > "$build.log" 2>&1 || { tail -50 "$build.log" >&2; exit 1; }
# Where files cost least: the database target writes several for each input.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
for target in "${targets[@]}"; do
  mkdir -p "$build/corpus/$target" "$build/findings"
  echo "$target: $seconds s"
  # -detect_leaks is the sanitizer's own at the end of every input; a slow input (above 10 s) counts as a hang.
  "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
    "$build/corpus/$target" "$root/tests/fuzz/corpus/$target" > "$build/$target.log" 2>&1 || { tail -40 "$build/$target.log" >&2; exit 1; }
  grep -E "number_of_executed_units|new_units_added|peak_rss" "$build/$target.log" | sed 's/^stat::/  /'
done
