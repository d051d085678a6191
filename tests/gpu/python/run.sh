#!/bin/bash
# run.sh [steps|tests|ranks]: the tests on a card, in a clone that has build/gpu/ of bundle.sh; nothing else is needed but
# torch. steps: the step's time with and without install(). tests: all that is marked gpu. ranks: what runs on two ranks
# alone; with two cards each rank has its own, over NCCL, with one they share it over gloo. Without a word: steps, tests.
# OUT (default: build/gpu) gets the output as gpu-WORD.txt. Exit code 1 if anything failed.
cd "$(dirname "$0")/../../.." || exit 1
export OOMSCOPE_PROGRAM=$PWD/build/gpu/bin/oomscope PYTHONPATH=$PWD/python:$PWD/build/gpu/site PYTHONDONTWRITEBYTECODE=1
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}  # one number needs no NVLink multicast
out=${OUT:-build/gpu}
set -o pipefail

about() {
  date -u +%F
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  python3 -c 'import sys, torch; print("torch", torch.__version__, "python", sys.version.split()[0])'
}

steps() {
  local failed=0
  for stacks in python all; do
    timeout 120 python3 tests/gpu/python/bench_step_time.py build/gpu/work.py $stacks 2>&1 | grep -v '^gpt_fp32 ' || failed=1
  done
  return $failed
}

tests() {
  timeout "${SECONDS_MOST:-460}" python3 -m pytest -q -s -m gpu -p no:cacheprovider --rootdir=. -c /dev/null \
    tests/gpu/python "$@" 2>&1
}

run() { # WORD COMMAND...
  { about; "${@:2}"; } 2>&1 | tee "$out/gpu-$1.txt"
}

case ${1:-all} in
  steps) run steps steps ;;
  tests) run tests tests ;;
  ranks) run ranks tests -k ranks ;;
  all) run steps steps; first=$?; run tests tests && exit $first ;;
  *) echo "usage: run.sh [steps|tests|ranks]" >&2; exit 2 ;;
esac
