#!/bin/bash
# run_bench.sh FOLDER: runs each bench_* program of FOLDER, then each script bench/*.py on the program itself.
set -euo pipefail
folder=$1
cd "$(dirname "$0")/.."
for bench in "$folder"/bench_*; do
  [ -x "$bench" ] || continue
  echo "== $(basename "$bench")"
  "$bench"
done
for script in bench/bench_*.py; do
  [ -f "$script" ] || continue
  echo "== $script"
  python3 "$script" --program "$folder/oomscope"
done
