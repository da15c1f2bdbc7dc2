#!/bin/bash
# Records search spaces for `tilewright simulate`: measures every config of each problem in several passes and writes a T4 results file, with the model's
# predictions, and a T1 file of the space for each. Of a config's medians the lowest counts: other programs only add time. On a machine that others
# use too, one core with priority gives times that repeat:
#
#   scripts/record_spaces.sh TILEWRIGHT PASSES FOLDER NAME=PROBLEM...
#   taskset -c 1 nice -n -20 scripts/record_spaces.sh build/release/tilewright 2 recorded dense=forward:hq2,sq512,d64,fp32
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
tilewright=$1 passes=$2 folder=$3
shift 3
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for pass in $(seq "$passes"); do
  for each in "$@"; do
    "$tilewright" tune --problem "${each#*=}" --device cpu:0 --strategy exhaustive --budget 1000000 --finalists 1 --no-seeds --quiet --db "$scratch/pass.db" >/dev/null
    "$tilewright" db import --format db "$scratch/pass.db" --db "$scratch/all.db" >/dev/null
    rm -f "$scratch"/pass.db*
    echo "pass $pass of ${each%%=*}: done after $SECONDS s"
  done
done
for each in "$@"; do
  "$tilewright" simulate --space "$scratch/all.db" --problem "${each#*=}" --save "$folder/${each%%=*}.T4.json.gz"
  "$tilewright" db export "$scratch/all.db" --problem "${each#*=}" --format t1 --out "$folder/${each%%=*}.T1.json"
done
