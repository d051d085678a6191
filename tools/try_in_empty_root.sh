#!/bin/bash
# try_in_empty_root.sh FOLDER SUITE MIRROR [TARGET...]: does `make demo` and `make test` work for a stranger?
#
#   try_in_empty_root.sh /var/tmp/root bookworm http://deb.debian.org/debian
#   try_in_empty_root.sh /var/tmp/root jammy http://archive.ubuntu.com/ubuntu demo
#
# Makes an empty Debian or Ubuntu in FOLDER with debootstrap (git, make, ca-certificates; nothing else), copies the tree
# into it as a clone would have it, and runs the make targets there (default: demo test). FOLDER is used again if it holds
# a system already: then the packages of earlier runs are there; remove it to start empty. The proxy settings,
# certificates and name resolution of this machine are copied in, so that the mirror can be reached as here. Needs root.
set -euo pipefail

usage='usage: try_in_empty_root.sh FOLDER SUITE MIRROR [TARGET...]'
root=${1:?$usage}
suite=${2:?$usage}
mirror=${3:?$usage}
shift 3
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(demo test)
cd "$(dirname "$0")/.."

if [ ! -e "$root/etc/debian_version" ]; then
  components=main
  script=
  if [[ $mirror == *ubuntu* ]]; then
    components=main,universe
    [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=gutsy  # all of Ubuntu's are that one
  fi
  # Without the distribution's keys here debootstrap says so, and goes on.
  debootstrap --variant=minbase --include=git,make,ca-certificates --components="$components" "$suite" "$root" "$mirror" \
    ${script:+"$script"}
fi
for path in /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/ssl/certs /usr/local/share/ca-certificates /etc/resolv.conf /etc/hosts; do
  [ ! -e "$path" ] || cp -aL --parents "$path" "$root" 2> /dev/null || true
done

rm -rf "$root/oomscope"
mkdir -p "$root/oomscope"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --create --null --files-from=- | tar --extract --directory "$root/oomscope"

# debootstrap made the few devices that are needed; only /proc is missing.
if ! mountpoint -q "$root/proc"; then
  mount -t proc proc "$root/proc"
  trap 'umount "$root/proc"' EXIT
fi

for target in "${targets[@]}"; do
  echo "== make $target"
  start=$SECONDS
  env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$root" make --directory /oomscope "$target"
  echo "== make $target: $((SECONDS - start)) s"
done
