#!/usr/bin/env bash
# On a machine with an AMD GPU: probes every matrix instruction, checks attention against the float64 reference, tunes two
# problems for a short while, and writes a report file to send back. Without such a GPU: one line that says why, and exit code 2.
#   scripts/verify_on_amd.sh [device, amd:0] [seconds per tuned problem, 60]
set -uo pipefail
cd "$(dirname "$0")/.."
device=${1:-amd:0}
seconds=${2:-60}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
database=$scratch/tune.db
failed=0

build() { cmake --preset release && cmake --build --preset release -j "$(nproc)" --target tilewright test_backends_device; }
echo "verify_on_amd: building, which takes minutes the first time"
build >"$scratch/build" 2>&1 || { tail -n 40 "$scratch/build"; echo "verify_on_amd: the build failed: see above" >&2; exit 1; }

if ! build/release/tilewright devices | grep -q "^  $device "; then
  reason=$(build/release/tilewright devices | sed -n '/^amd$/,/^$/s/^  devices *none: //p')
  echo "verify_on_amd: there is no $device: ${reason:-it is not among the devices that 'build/release/tilewright devices' lists}" >&2
  exit 2
fi
report=amd-report-$(date +%Y%m%d-%H%M%S).txt

step() {
  echo
  echo "== $1"
  shift
  echo "\$ $*"
  "$@"
  local code=$?
  echo "exit code $code"
  [ $code -eq 0 ] || failed=1
}

run() {
  date -u
  uname -srm
  git log -1 --format='commit %H' 2>/dev/null
  git status --short 2>/dev/null
  cat /opt/rocm/.info/version 2>/dev/null
  step "devices" build/release/tilewright devices
  step "matrix instructions against the layout tables" build/release/tests/test_backends_device --gtest_filter='AmdProbeDevice.*'
  step "attention against the float64 reference" build/release/tilewright verify --device "$device" --all
  for problem in forward:b2,hq16,hkv16,sq2048,skv2048,d128,bf16 forward:b2,hq16,hkv16,sq2048,skv2048,d128,fp16,causal; do
    step "a short tune" build/release/tilewright tune --problem $problem --device "$device" --budget "${seconds}s" --db "$database"
    step "what it found" build/release/tilewright lookup --problem $problem --device "$device" --db "$database" --json
  done
  echo
  if [ $failed -eq 0 ]; then echo "all steps succeeded"; else echo "some steps FAILED: see their exit codes"; fi
}

run 2>&1 | tee "$report"
echo "report: $report"
grep -q "^all steps succeeded" "$report"
