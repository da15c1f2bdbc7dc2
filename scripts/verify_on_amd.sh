#!/usr/bin/env bash
# On a machine with an AMD GPU: probes every matrix instruction, checks attention against the float64 reference, tunes two
# problems for a short while, and writes a report file to send back.
#   scripts/verify_on_amd.sh [device, amd:0] [seconds per tuned problem, 60]
set -uo pipefail
cd "$(dirname "$0")/.."
device=${1:-amd:0}
seconds=${2:-60}
report=amd-report-$(date +%Y%m%d-%H%M%S).txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
database=$scratch/tune.db
failed=0

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
  step "build" bash -c 'cmake --preset release >/dev/null && cmake --build --preset release -j "$(nproc)" --target tilewright test_backends_device | tail -1'
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
