#!/bin/bash
# check_web.sh build: is web/dist/report.html what web/ builds to, byte for byte? And do the viewer's own tests pass?
# check_web.sh numbers PROGRAM: are the numbers that the page sums up those of --json, on the recordings of tests/data?
# check_web.sh page PROGRAM [FOLDER]: the page in Chromium; screenshots go to FOLDER.
# Exits 77 (skipped), and says why, without Node, Chromium, or the npm packages that web/package-lock.json names.
set -euo pipefail
what=${1:?usage: check_web.sh build | numbers PROGRAM | page PROGRAM [FOLDER]}
program=$(realpath -m "${2:-.}")
pictures=${3:+$(realpath -m "$3")}
cd "$(dirname "$0")/../web"

skip() {
  echo "check_web.sh: $1: skipped" >&2
  exit 77
}

command -v node > /dev/null && command -v npm > /dev/null || skip "Node and npm are not installed (Debian: nodejs npm)"
# One installation at a time; what is there and matches the lock file is kept.
exec 9> .npm-lock
flock 9
if ! cmp -s package-lock.json node_modules/.installed 2> /dev/null; then
  npm ci --ignore-scripts > /dev/null 2>&1 || skip "npm ci failed (no network?)"
  cp package-lock.json node_modules/.installed
fi
flock -u 9

case $what in
  build)
    npx tsc --noEmit
    npx vite build --outDir build/dist --logLevel warn
    if ! cmp build/dist/report.html dist/report.html; then
      echo "check_web.sh: web/dist/report.html is not what web/ builds to; run: make web, and commit it" >&2
      exit 1
    fi
    npx vite build --config vite.test.config.ts --logLevel warn
    node --test build/test/*.test.js
    ;;
  numbers)
    npx vite build --config vite.test.config.ts --outDir build/numbers --logLevel warn
    # Those of the oracle were made under limits and, before torch 2.4, settings that no file holds: where they cannot be
    # inferred the replay is not exact, and the page, which shows what is recorded, is not compared with it.
    exact() {
      local recording
      while IFS= read -r -d '' recording; do
        if [[ $recording != */oracle/* ]] || "$program" verify "$recording" > /dev/null 2>&1; then
          printf '%s\0' "$recording"
        else
          echo "not compared, since its replay is not exact: $recording" >&2
        fi
      done
    }
    find ../tests/data -name '*.pickle.zst' -print0 | sort -z | exact | xargs -0 node build/numbers/numbers.js "$program"
    ;;
  page) node test/page.mjs "$program" ${pictures:+"$pictures"} ;;
  *) echo "check_web.sh: unknown: $what" >&2 && exit 2 ;;
esac
