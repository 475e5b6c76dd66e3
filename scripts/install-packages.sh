#!/bin/sh
# SPDX-License-Identifier: MIT
# Install the Debian packages that are named, or all that some tests need: Slurm,
# MooseFS, `ip`, FUSE, a browser, shells, and programs to control. Where that is not possible,
# say why and succeed: the tests that need them are skipped.
set -eu

PACKAGES="${*:-slurm-wlm slurm-client munge iproute2 gcc fuse3 libfuse3-dev bindfs
    moosefs-master moosefs-chunkserver moosefs-client moosefs-cli
    rsync fio busybox-static sqlite3 openmpi-bin libopenmpi-dev chromium
    prometheus zsh fish}"

missing=
for package in $PACKAGES; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

skip() {
    echo "install-packages: cannot install$missing: $1; tests that need them are skipped" >&2
    exit 0
}

command -v apt-get >/dev/null || skip "there is no apt-get"
[ "$(id -u)" -eq 0 ] || skip "not root"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
    # shellcheck disable=SC2086 - a list of words
    timeout 600 apt-get install -qq -y --no-install-recommends $missing >"$log" 2>&1
}
install || { timeout 300 apt-get update -qq >"$log" 2>&1 && install; } || {
    tail -n 3 "$log" >&2
    skip "apt-get failed"
}
