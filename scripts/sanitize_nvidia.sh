#!/bin/sh
# Runs the NVIDIA kernels' and launches' device tests, which cover every way a kernel can be built, under each tool of compute-sanitizer.
# Usage: scripts/sanitize_nvidia.sh [TEST_BINARY [GTEST_FILTER [TOOL...]]]
# Exits 0 if every tool is clean, 1 if one is not, 2 if there is nothing to run. SECONDS_PER_TOOL (default 600) bounds each. The tool is COMPUTE_SANITIZER, or the
# one in PATH. racecheck should be of CUDA 13.5 (2026.4) or later: it still reports two pairs that are no races, in tests that docs/nvidia.md names, and so ends
# this with 1; older ones report the first in every config. CUDA 13.5's is in the Python package nvidia-cuda-sanitizer-api, and serves a driver of CUDA 13.0.
binary=${1:-build/release/tests/test_verify_device}
filter=${2:-*Nvidia*}
[ $# -gt 2 ] && shift 2 && tools=$* || tools="memcheck racecheck initcheck synccheck"
sanitizer=${COMPUTE_SANITIZER:-compute-sanitizer}
[ -x "$binary" ] || { echo "$binary is not built: cmake --build --preset release --target test_verify_device"; exit 2; }
command -v "$sanitizer" >/dev/null || { echo "$sanitizer is not there: set COMPUTE_SANITIZER or PATH"; exit 2; }
version=$("$sanitizer" --version | sed -n 's/^Version \([0-9]*\.[0-9]*\).*/\1/p')
echo "compute-sanitizer ${version:-of no known version}"

clean=0
for tool in $tools; do
    log=$(mktemp)
    # The host's cost of a launch is another matter under a tool. racecheck watches the shared memory within a block, for which it makes no
    # difference what runs beside it, and is too slow for the large problems of the launch tests.
    except="*CostsTheHost*"
    if [ "$tool" = racecheck ]; then
        except="$except:NvidiaLaunch*"
        case $version in 20[01]?.* | 202[0-5].* | 2026.[0-3]) echo "racecheck before 2026.4 reports races of attention_backward_keys that are none" ;; esac
    fi
    # Compiled so that it can follow who has read what (kernels/tile/target.h); of other machine code in nothing but how many lanes arrive at barriers.
    lanes=
    [ "$tool" = racecheck ] && lanes=TILEWRIGHT_EVERY_LANE_ARRIVES=1
    env $lanes timeout "${SECONDS_PER_TOOL:-600}" "$sanitizer" --tool "$tool" --error-exitcode 9 "$binary" "--gtest_filter=$filter-$except" >"$log" 2>&1
    status=$?
    printf '%-10s exit %d  %s  %s\n' "$tool" "$status" "$(grep -c '\[       OK' "$log") passed" "$(grep 'SUMMARY' "$log" | sed 's/^=* *//' | tr '\n' ' ')"
    sed -n 's/.*Race reported between [A-Za-z]* access at \([A-Za-z0-9_]*\).*/\1/p' "$log" | sort | uniq -c | sed 's/^ */           races reported, by kernel: /'
    [ "$status" -eq 0 ] || { clean=1; grep -v -E '\[ RUN|\[       OK' "$log" | head -n 40; }
    rm -f "$log"
done
exit $clean
