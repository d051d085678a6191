#!/bin/bash
# install_packages.sh SECTION...: installs what is missing of those sections of tools/packages.txt, and says so first.
# Does nothing, silently, when all is there. Uses apt as root or through sudo.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

wanted=()
for section in "$@"; do
  while read -r package; do
    wanted+=("$package")
  done < <(awk -v want="[$section]" '/^#/ || !NF { next } /^\[/ { in_it = ($0 == want); next } in_it' "$here/packages.txt")
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "This system has no apt. oomscope needs what these Debian packages hold: ${wanted[*]}" >&2
  exit 0  # the build itself says what it does not find
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${Status}' "$package" 2> /dev/null || true)
  [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "Missing packages: ${missing[*]}" >&2
    echo "Install them as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Some packages are missing; apt installs now: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
  > /dev/null
