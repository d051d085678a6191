#!/bin/bash
# check_package.sh BUILD_FOLDER: does find_package(oomscope) work for somebody else's project?
# Installs the build into a scratch folder, then builds and runs each examples/*/ that has a CMakeLists.txt against it.
set -euo pipefail
build=${1:?usage: check_package.sh BUILD_FOLDER}
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

found=0
for project in examples/*/CMakeLists.txt; do
  [ -e "$project" ] || continue
  [ "$found" = 1 ] || cmake --install "$build" --prefix "$scratch/installed" > /dev/null
  found=1
  name=$(basename "$(dirname "$project")")
  cmake -S "examples/$name" -B "$scratch/$name" -DCMAKE_PREFIX_PATH="$scratch/installed" -DCMAKE_BUILD_TYPE=Release > /dev/null
  cmake --build "$scratch/$name"
  (cd "$scratch/$name" && ctest --output-on-failure --no-tests=ignore)
done
if [ "$found" = 0 ]; then
  echo "no examples/*/CMakeLists.txt yet: skipped"
  exit 77
fi
