#!/bin/sh
# SPDX-License-Identifier: MIT
# Inside a clean root: install penstock from local files and use it. /files holds the
# wheels and the deb. scripts/test-install.sh calls this.
set -eu
say() { echo "  $*"; }
fail() {
    echo "use-installed: $*" >&2
    exit 1
}
command -v gcc cc >/dev/null && fail "this root has a compiler"
mkdir -p /data /backing /mnt/penstock
# moved JOB: the bytes that the daemon has seen of a job.
moved() {
    penstock ctl status --json - | python3 -c '
import json, sys
jobs = json.load(sys.stdin)["jobs"]
print(int(sum(job["moved"] for job in jobs if job["job"] == sys.argv[1])))' "$1"
}
# await JOB BYTES: wait until the daemon has seen more bytes of a job.
await() {
    for _ in $(seq 100); do
        [ "$(moved "$1")" -gt "$2" ] && return
        sleep 0.1
    done
    fail "ctl shows only $(moved "$1") bytes of the job $1"
}
# start: start the daemon, and wait until it answers.
start() {
    penstock serve --bandwidth "200 MB/s" --prefixes /data 2>/serve.log &
    daemon=$!
    for _ in $(seq 100); do
        penstock ctl status >/dev/null 2>&1 && return
        sleep 0.2
    done
    cat /serve.log >&2
    fail "the daemon does not answer"
}
stop() {
    kill $daemon
    wait $daemon || :
}

# use: control a program, see its bytes, and write through a mount.
use() {
    start
    # A job that has ended is not shown.
    penstock run --require-control --job try -- sh -c '
        dd if=/dev/zero of=/data/file bs=64k count=100 status=none
        until [ -e /data/seen ]; do sleep 0.1; done' &
    job=$!
    await try 6553599
    [ "$(moved try)" -eq 6553600 ] || fail "ctl shows $(moved try) bytes instead of 6553600"
    : >/data/seen
    wait $job || fail "the job has failed: status $?"
    rm /data/seen
    say "penstock run: ctl shows 6553600 bytes"
    stop
    penstock mount /backing /mnt/penstock --limit "100 MB/s" --background
    dd if=/dev/zero of=/mnt/penstock/file bs=64k count=20 status=none
    penstock mount --status /mnt/penstock | grep -q "^written: 1.311 MB" ||
        fail "the mount has not seen the bytes"
    penstock mount --unmount /mnt/penstock
    [ "$(stat -c %s /backing/file)" -eq 1310720 ] || fail "the file is not complete"
    say "penstock mount: 1310720 bytes"
}

# --- The wheel ----------------------------------------------------------------------------
pip() { python3 "$(echo /files/pip-*.whl)/pip" --quiet --disable-pip-version-check "$@"; }
pip install --no-index --find-links /files --break-system-packages \
    --root-user-action ignore penstock
say "installed by pip: $(penstock --version)"
use
pip uninstall --yes --break-system-packages --root-user-action ignore penstock
[ ! -e /usr/local/bin/penstock ] || fail "pip has left /usr/local/bin/penstock"

# --- The deb, upgraded under a running job ------------------------------------------------
dpkg -i /files/penstock_*.deb >/dev/null
hash -r
say "installed by dpkg: $(penstock --version)"
use
start
penstock run --require-control --job long -- sh -c '
    until [ -e /data/stop ]; do
        dd if=/dev/zero of=/data/long bs=64k count=10 conv=notrunc status=none || exit 3
    done' &
job=$!
await long 0
inode=$(stat -c %i /usr/lib/penstock/lib/python3*/site-packages/penstock/native/built/libpenstock.so)
dpkg-deb -R /files/penstock_*.deb /newer
sed -i 's/^Version: .*/&+newer/' /newer/DEBIAN/control
dpkg-deb -Znone -b /newer /newer.deb >/dev/null
dpkg -i /newer.deb >/dev/null
kill -0 $job || fail "the job has not survived the upgrade"
grep -q " $inode .*libpenstock.so (deleted)" "/proc/$job/maps" ||
    fail "the library of the running job was overwritten"
stop
start
before=$(moved long)
await long $((before + 1000000))
: >/data/stop
wait $job || fail "the job has failed: status $?"
stop
say "upgraded by dpkg: the job goes on, and the new daemon controls it"
dpkg -P penstock >/dev/null 2>&1 # it keeps /var/lib/penstock, which has data
[ ! -e /usr/lib/penstock ] || fail "dpkg has left /usr/lib/penstock"
say "removed by dpkg"
