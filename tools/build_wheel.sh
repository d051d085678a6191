#!/bin/bash
# build_wheel.sh OUT_FOLDER [PROGRAM]: the wheel with its manylinux tag, confirmed by auditwheel. With PROGRAM that
# program is carried and nothing is compiled. Needs pip, wheel and auditwheel in PYTHON (default: python3).
set -euo pipefail
out=${1:?usage: build_wheel.sh OUT_FOLDER [PROGRAM]}
python=${PYTHON:-python3}
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

options=(-C "build-dir=$scratch/build")
[ $# -lt 2 ] || options+=(-C "cmake.define.OOMSCOPE_PREBUILT=$(realpath "$2")")
isolation=()
"$python" -c 'import scikit_build_core' 2> /dev/null && isolation=(--no-build-isolation)
"$python" -m pip wheel -q --no-deps "${isolation[@]}" "${options[@]}" -w "$scratch" .
platform=manylinux_2_34_$(uname -m)
"$python" -m wheel tags --platform-tag "$platform" --remove "$scratch"/oomscope-*.whl > /dev/null
wheel=$(echo "$scratch"/oomscope-*.whl)
found=$("$python" -m auditwheel show "$wheel" | tr '\n' ' ')
case $found in
  *"consistent with the following platform tag: \"manylinux_2_"*) ;;
  *) echo "build_wheel.sh: auditwheel does not confirm $platform: $found" >&2; exit 1 ;;
esac
echo "$found" | grep -o 'manylinux_2_[0-9]*_[a-z0-9_]*' | head -1
mkdir -p "$out"
mv "$wheel" "$out/"
