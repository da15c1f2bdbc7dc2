#!/bin/bash
# Writes tests/golden anew from what the compiler gives now; read the differences before committing them.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --build build/release --target test_model_full
TILEWRIGHT_WRITE_GOLDEN=1 build/release/tests/test_model_full --gtest_filter='*Resources.DefaultConfigsAreAsTheGoldenFileHasThem'
git diff --stat -- tests/golden
