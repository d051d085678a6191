#!/bin/bash
# run_tests.sh: what `make test` does once the packages are there. Prints the time of each part; ends with the summary
# of one ctest run that holds everything: the tests of the release build, those of the sanitizer builds, the checks.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

part() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  echo "== $name: $((SECONDS - start)) s"
}

configure() { # quiet unless it fails
  local log
  if ! log=$(cmake --preset "$@" 2>&1); then
    echo "$log"
    return 1
  fi
}

has_libfuzzer() { # Debian's clang-14 comes without it unless libclang-rt-14-dev is there
  command -v clang++-14 > /dev/null &&
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++-14 -fsanitize=fuzzer,address -x c++ -o /dev/null - 2> /dev/null
}

build_release() {
  configure ci -DOOMSCOPE_SANITIZED_BUILDS="$1"
  cmake --build --preset ci --parallel "$jobs"
}
# The layers that take bytes from outside, and the engine: by clang with libFuzzer where it is there, else by the compiler
# at hand, with the fuzz targets on their corpus and on simple mutations of it.
build_sanitized() {
  configure "$1" -DOOMSCOPE_FUZZ_SECONDS=10 '-DOOMSCOPE_TEST_LAYERS=base;types;pickle;evidence;model;caching;replay'
  cmake --build "build/$1" --target unit_tests fuzz_targets --parallel "$jobs"
}

# Torch is a large download: it comes while the program is built. ctest's python.package waits for it.
tools/python_tests.sh --prepare &
sanitized=asan-ubsan
if has_libfuzzer; then
  sanitized=fuzz
else
  echo "== clang-14 with libFuzzer is not installed: the fuzz targets run without it"
fi
part "sanitizer build" build_sanitized "$sanitized"
part "release build" build_release "$PWD/build/$sanitized"
echo "== tests"
ctest --preset ci --parallel "$jobs"
