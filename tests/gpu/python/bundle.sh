#!/bin/bash
# bundle.sh PROGRAM WORK_PY: build/gpu/, what the tests on a card need beside the clone, for a machine with torch and no
# network: the program, pytest, and the script whose step is timed (it takes "gpt_fp32 OUT --steps N --stacks none
# --timed"). There: bash tests/gpu/python/run.sh
set -euo pipefail
program=$(realpath "${1:?usage: bundle.sh PROGRAM WORK_PY}") work=$(realpath "${2:?usage: bundle.sh PROGRAM WORK_PY}")
cd "$(dirname "$0")/../../.."
rm -rf build/gpu
mkdir -p build/gpu/bin
cp "$program" build/gpu/bin/oomscope
cp "$work" build/gpu/work.py
"${PYTHON:-python3}" -m pip install -q --target build/gpu/site --no-compile pytest==9.0.3
echo "build/gpu: $(du -sm build/gpu | cut -f1) MiB; where the card is: bash tests/gpu/python/run.sh"
