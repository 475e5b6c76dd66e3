#!/bin/sh
# SPDX-License-Identifier: MIT
# Install what is in dist/ (`make wheel`, `make dist`) in clean Debian roots,
# without compiler and network, and use it there (scripts/use-installed.sh). Also load the
# preload library into a program of an older C library, and of aarch64 under emulation.
#
#     sh scripts/test-install.sh PYTHON
#
# Needs root; the roots are kept in build/roots, and changes are thrown away.
set -eu
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
skip() {
    echo "test-install: skipped: $1"
    exit 0
}
[ "$(id -u)" -eq 0 ] || skip "not root"
[ "$(uname -m)" = x86_64 ] || skip "only for x86-64"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
command -v mmdebstrap >/dev/null || skip "there is no mmdebstrap"
mirror=$(sh scripts/debian-mirror.sh)
[ -n "$mirror" ] || skip "apt knows no archive of Debian"
home=$(mktemp -d "${TMPDIR:-/tmp}/penstock-install-XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# root SUITE VARIANT PACKAGES: make a root in build/roots, unless it is there.
root() {
    [ -e "build/roots/$1/.complete" ] && return
    rm -rf "build/roots/$1"
    mkdir -p build/roots
    mmdebstrap --quiet --variant="$2" --include="$3" "$1" "build/roots/$1" "$mirror" \
        2>"$home/log" || { tail -n 3 "$home/log" >&2; skip "no root of Debian $1"; }
    touch "build/roots/$1/.complete"
}

# --- A clean root: wheel, packages, upgrade -----------------------------------------------
root bookworm essential python3,util-linux
mkdir "$home/files"
cp dist/*_x86_64.whl dist/*.deb scripts/use-installed.sh "$home/files"
"$python" -m pip --quiet --disable-pip-version-check download --dest "$home/files" \
    --python-version 3.11 --only-binary :all: "$home"/files/penstock-*.whl pip \
    2>"$home/log" || { cat "$home/log" >&2; exit 1; }
begun=$(date +%s)
# The namespaces take mounts, processes and the overlay with them.
unshare --mount --pid --net --fork --kill-child --mount-proc sh -eu -c '
    home=$1 root=$2
    mkdir "$home/tmp"
    mount -t tmpfs tmpfs "$home/tmp"
    mkdir "$home/tmp/upper" "$home/tmp/work" "$home/tmp/root"
    mount -t overlay -o "lowerdir=$root,upperdir=$home/tmp/upper,workdir=$home/tmp/work" \
        overlay "$home/tmp/root"
    cd "$home/tmp/root"
    mkdir -p files
    mount --bind "$home/files" files
    mount --rbind /dev dev
    mount -t proc proc proc
    exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root \
        timeout 120 chroot . sh /files/use-installed.sh
' sh "$home" "$PWD/build/roots/bookworm"
echo "test-install: in a clean root of Debian 12: $(($(date +%s) - begun)) s"

# --- The preload library elsewhere --------------------------------------------------------
library() { # library MACHINE: unpack the preload library and the writer of a wheel
    mkdir -p "$home/$1"
    "$python" -m zipfile -e "$(echo dist/*_"$1".whl)" "$home/$1"
    chmod -R a+rx "$home/$1"
}
root bullseye extract coreutils
library x86_64
mkdir -p build/roots/bullseye/proc
unshare --mount sh -eu -c 'mount -t proc proc build/roots/bullseye/proc && exec "$@"' sh \
    "$python" scripts/try_library.py "$home/x86_64" chroot build/roots/bullseye
echo "test-install: the preload library counts calls under glibc of Debian 11"
if command -v qemu-aarch64-static >/dev/null && [ -d /usr/aarch64-linux-gnu ] &&
    [ -e "$(echo dist/*_aarch64.whl)" ]; then
    library aarch64
    "$python" scripts/try_library.py "$home/aarch64" qemu-aarch64-static \
        -L /usr/aarch64-linux-gnu
    echo "test-install: the preload library counts calls on aarch64, emulated"
else
    echo "test-install: skipped: aarch64 (qemu-user-static, libc6-arm64-cross)"
fi
