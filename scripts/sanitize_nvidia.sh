#!/bin/sh
# Runs the NVIDIA kernels' and launches' device tests, which cover every way a kernel can be built, under each tool of compute-sanitizer.
# Usage: scripts/sanitize_nvidia.sh [TEST_BINARY [GTEST_FILTER [TOOL...]]]
# Exits 0 if every tool is clean, 1 if one is not, 2 if there is nothing to run. SECONDS_PER_TOOL (default 600) bounds each.
# racecheck reports races in attention_backward_keys that are none; which, and why, is in docs/nvidia.md. It names them by kernel and offset alone, which no
# list of known ones could go by, so they count; how many reports each kernel has is printed.
binary=${1:-build/release/tests/test_verify_device}
filter=${2:-*Nvidia*}
[ $# -gt 2 ] && shift 2 && tools=$* || tools="memcheck racecheck initcheck synccheck"
[ -x "$binary" ] || { echo "$binary is not built: cmake --build --preset release --target test_verify_device"; exit 2; }
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not in PATH"; exit 2; }

clean=0
for tool in $tools; do
    log=$(mktemp)
    # The host's cost of a launch is another matter under a tool. racecheck watches the shared memory within a block, for which it makes no
    # difference what runs beside it, and is too slow for the large problems of the launch tests.
    except="*CostsTheHost*"
    [ "$tool" = racecheck ] && except="$except:NvidiaLaunch*"
    timeout "${SECONDS_PER_TOOL:-600}" compute-sanitizer --tool "$tool" --error-exitcode 9 "$binary" "--gtest_filter=$filter-$except" >"$log" 2>&1
    status=$?
    printf '%-10s exit %d  %s  %s\n' "$tool" "$status" "$(grep -c '\[       OK' "$log") passed" "$(grep 'SUMMARY' "$log" | sed 's/^=* *//' | tr '\n' ' ')"
    sed -n 's/.*Race reported between [A-Za-z]* access at \([A-Za-z0-9_]*\).*/\1/p' "$log" | sort | uniq -c | sed 's/^ */           races reported, by kernel: /'
    [ "$status" -eq 0 ] || { clean=1; grep -v -E '\[ RUN|\[       OK' "$log" | head -n 40; }
    rm -f "$log"
done
exit $clean
