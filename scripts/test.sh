#!/usr/bin/env bash
# Sets up, builds and passes every test that needs no GPU. Arguments go to ctest: scripts/test.sh -L quick
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release -j "$(nproc)"
ctest --preset release -j "$(nproc)" -LE device --output-on-failure "$@"
