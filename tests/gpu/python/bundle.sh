#!/bin/bash
# bundle.sh PROGRAM WORK_PY: build/gpu/, all that the tests on a card need, for a machine with torch and no network:
# the program, the package, these tests, pytest, and the script whose step is timed. Then there: bash build/gpu/run.sh
set -euo pipefail
program=${1:?usage: bundle.sh PROGRAM WORK_PY} work=${2:?usage: bundle.sh PROGRAM WORK_PY}
cd "$(dirname "$0")/../../.."
rm -rf build/gpu
mkdir -p build/gpu/bin build/gpu/tests/gpu
cp "$program" build/gpu/bin/oomscope
cp -r python build/gpu/python
cp -r tests/gpu/python build/gpu/tests/gpu/python
cp "$work" build/gpu/work.py
"${PYTHON:-python3}" -m pip install -q --target build/gpu/site --no-compile pytest==9.0.3
cat > build/gpu/run.sh << 'RUN'
#!/bin/bash
# Prints the card, the step times, then the tests. OUT (default: here) gets the whole output as gpu-tests.txt.
cd "$(dirname "$0")"
export OOMSCOPE_PROGRAM=$PWD/bin/oomscope PYTHONPATH=$PWD/python:$PWD/site PYTHONDONTWRITEBYTECODE=1
{
  date -u +%F
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  python3 -c 'import sys, torch; print("torch", torch.__version__, "python", sys.version.split()[0])'
  for stacks in python all; do
    timeout 120 python3 tests/gpu/python/bench_step_time.py work.py $stacks 2>&1 | grep -v '^gpt_fp32 '
  done
  timeout 460 python3 -m pytest -q -s -m gpu -p no:cacheprovider --rootdir=. -c /dev/null tests/gpu/python 2>&1
} 2>&1 | tee "${OUT:-.}/gpu-tests.txt"
RUN
echo "build/gpu: $(du -sm build/gpu | cut -f1) MiB; there: bash build/gpu/run.sh"
