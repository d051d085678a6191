#!/bin/bash
# python_tests.sh --prepare | PROGRAM [PYTEST ARGUMENTS...]: the tests of the Python package, against real torch.
#
# They run in a virtual environment outside the clone, ~/.cache/oomscope/venv-HASH, made once for each content of
# python/tests/requirements.txt: torch with its CUDA libraries, a download of some 3 GB and 5.5 GB on disk (there is no
# smaller torch on PyPI for Linux). OOMSCOPE_PYTHON names a Python of your own instead, or "none" to leave the tests
# out. Exit code 77: skipped, with the reason printed.
set -euo pipefail
cd "$(dirname "$0")/.."
requirements=python/tests/requirements.txt

skip() {
  echo "python_tests.sh: skipped: $1"
  exit 77
}

environment_of() {
  local hash
  hash=$(cat "$requirements" <(python3 --version) | sha256sum | cut -c1-12)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/oomscope/venv-$hash"
}

prepare() { # under a lock: --prepare may still be at work when the tests begin
  local folder=$1
  mkdir -p "$(dirname "$folder")"
  exec 9> "$folder.lock"
  flock 9
  [ ! -e "$folder/ready" ] || return 0
  echo "python_tests.sh: making $folder: downloads some 3 GB, once"
  rm -rf "$folder"
  python3 -m venv "$folder" || return 1
  "$folder/bin/python" -m pip install -q --no-cache-dir --progress-bar off -r "$requirements" || return 1
  touch "$folder/ready"
}

if [ "${OOMSCOPE_PYTHON:-}" = none ]; then
  skip "OOMSCOPE_PYTHON=none"
fi
python=${OOMSCOPE_PYTHON:-}
if [ -z "$python" ]; then
  folder=$(environment_of)
  prepare "$folder" || skip "torch cannot be installed here; OOMSCOPE_PYTHON names a Python that has it"
  python=$folder/bin/python
fi
[ "${1:-}" != --prepare ] || exit 0
OOMSCOPE_PROGRAM=$(realpath "${1:?usage: python_tests.sh PROGRAM}") exec "$python" -m pytest -rs --durations=5 "${@:2}"
