#!/bin/sh
# Runs the NVIDIA kernels' and launches' device tests, which cover every way a kernel can be built, under each tool of compute-sanitizer.
# Usage: scripts/sanitize_nvidia.sh [TEST_BINARY [GTEST_FILTER [TOOL...]]]
# Exits 0 if every tool is clean in every test, 1 if one is not or a test did not finish, 2 if there is nothing to run. Each test is a process of its own, JOBS
# (default: as many as there are cores) at a time on the one device; SECONDS_PER_TOOL (default 600) bounds each tool. The tool is COMPUTE_SANITIZER, or the one in
# PATH. racecheck should be of CUDA 13.5 (2026.4) or later: older ones report races that are none. CUDA 13.5's is in the Python package
# nvidia-cuda-sanitizer-api, and serves a driver of CUDA 13.0.
export binary=${1:-build/release/tests/test_verify_device}
filter=${2:-*Nvidia*}
[ $# -gt 2 ] && shift 2 && tools=$* || tools="memcheck racecheck initcheck synccheck"
export sanitizer=${COMPUTE_SANITIZER:-compute-sanitizer}
[ -x "$binary" ] || { echo "$binary is not built: cmake --build --preset release --target test_verify_device"; exit 2; }
command -v "$sanitizer" >/dev/null || { echo "$sanitizer is not there: set COMPUTE_SANITIZER or PATH"; exit 2; }
version=$("$sanitizer" --version | sed -n 's/^Version \([0-9]*\.[0-9]*\).*/\1/p')
echo "compute-sanitizer ${version:-of no known version}"
case $version in 20[01]?.* | 202[0-5].* | 2026.[0-3]) echo "racecheck before 2026.4 reports races that are none" ;; esac

# Of one test: its output, and how it ended. None of the latter: it did not begin, or not finish.
one='log=$logs/$(echo "$1" | tr / +); left=$((deadline - $(date +%s))); [ $left -gt 0 ] || exit 0
timeout $left "$sanitizer" --tool $tool --error-exitcode 9 "$binary" "--gtest_filter=$1" >"$log" 2>&1; ended=$?
[ $ended -eq 124 ] || echo $ended >"$log.ended"'

clean=0
for tool in $tools; do
    export tool logs=$(mktemp -d) deadline=$(($(date +%s) + ${SECONDS_PER_TOOL:-600}))
    # The host's cost of a launch is another matter under a tool. racecheck watches the shared memory within a block, for which it makes no difference what runs
    # beside it, or how often, and is too slow for the large problems of the launch tests and for twenty runs. It takes kernels that it can follow
    # (kernels/tile/target.h): they differ in how many lanes arrive at barriers, and in one mark whose accesses are atomic.
    except="*CostsTheHost*" kernels=
    [ "$tool" = racecheck ] && except="$except:NvidiaLaunch*:*TwentyTimes*" kernels=TILEWRIGHT_FOR_RACECHECK=1
    tests=$("$binary" --gtest_list_tests "--gtest_filter=$filter-$except" | sed -n 's/ *#.*//; /^[^ ]*\.$/h; /^  /{G; s/^  \(.*\)\n\(.*\)/\2\1/p}')
    echo "$tests" | env $kernels xargs -P "${JOBS:-$(nproc)}" -I{} sh -c "$one" sh {}

    total=0 passed=0 skipped=0
    for test in $tests; do
        log=$logs/$(echo "$test" | tr / +) total=$((total + 1))
        ended=$(cat "$log.ended" 2>/dev/null)
        if [ "$ended" = 0 ]; then
            grep -q '^\[  SKIPPED ' "$log" && skipped=$((skipped + 1)) && continue
            grep -q 'SUMMARY: 0 ' "$log" && passed=$((passed + 1)) && continue  # no warnings either
        fi
        clean=1
        [ -n "$ended" ] || { echo "$tool: $test did not finish"; continue; }
        echo "$tool: $test ended with $ended"
        grep -v -E '\[ RUN|\[       OK|(Device|Host) Frame|^=* $' "$log" | cut -c 1-240 | head -n 40
    done
    echo "$tool: $passed of $total passed, $skipped skipped"
    rm -r "$logs"
    [ "$total" -gt "$skipped" ] || exit 2
done
exit $clean
