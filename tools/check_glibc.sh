#!/bin/bash
# check_glibc.sh PROGRAM [FLOOR]: fails when the program needs a glibc newer than FLOOR (default 2.34), or any
# shared library besides glibc's own.
set -euo pipefail

program=${1:?usage: check_glibc.sh PROGRAM [FLOOR]}
floor=${2:-2.34}
if ! command -v objdump > /dev/null; then
  echo "check_glibc.sh: objdump is not installed (package binutils); skipped" >&2
  exit 77
fi

# Lines such as: 0000000000000000  DF *UND*  0000000000000000 (GLIBC_2.35) _dl_find_object
too_new=$(objdump -T "$program" | sed -n 's/.*\*UND\*.*(*GLIBC_\([0-9.]*\))* *\([^ ]*\)$/\1 \2/p' |
  while read -r version symbol; do
    newest=$(printf '%s\n%s\n' "$version" "$floor" | sort -V | tail -1)
    [ "$newest" = "$floor" ] || echo "  $symbol needs glibc $version"
  done)
others=$(objdump -p "$program" | sed -n 's/^ *NEEDED *//p' | grep -Ev '^(libc|libm|ld-linux[a-z0-9-]*)\.so\.[0-9]+$' || true)

if [ -n "$too_new" ]; then
  echo "check_glibc.sh: $program does not start on glibc $floor:" >&2
  echo "$too_new" >&2
  echo "Define the function in cmake/glibc_floor.c, or avoid what calls it." >&2
fi
if [ -n "$others" ]; then
  echo "check_glibc.sh: $program needs shared libraries besides glibc:" >&2
  echo "$others" | sed 's/^/  /' >&2
fi
[ -z "$too_new$others" ] || exit 1

needed=$(objdump -T "$program" | sed -n 's/.*\*UND\*.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -1)
echo "$program needs glibc $needed, and nothing else ($(stat -c %s "$program") bytes)"
