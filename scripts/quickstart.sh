#!/usr/bin/env bash
# From a fresh machine to a tuned config: sets up, builds, tunes forward attention of Llama 3.1 8B on the CPU, looks it up.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release -j "$(nproc)" --target tilewright
tilewright=build/release/tilewright
problem=(--model llama-3.1-8b --phase prefill --seq 512)

"$tilewright" tune "${problem[@]}" --device cpu:0 --budget 60s --db build/quickstart.db
"$tilewright" lookup "${problem[@]}" --device cpu:0 --db build/quickstart.db
