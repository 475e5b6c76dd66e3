#!/bin/sh
# SPDX-License-Identifier: MIT
# Two real writers on a mount of 20 MB/s: fair-share, then greedy-yield, then the
# controller is killed and both finish. Needs FUSE (penstock mount says what is missing),
# no root where FUSE needs none, and leaves nothing behind, however it ends.
#
#     sh scripts/demo-live.sh [SECONDS PER POLICY, default 12]
#
# PENSTOCK is the command to call (default: penstock).
set -eu
PENSTOCK=${PENSTOCK:-penstock}
seconds=${1:-12}
home=$(mktemp -d "${TMPDIR:-/tmp}/penstock-demo-XXXXXX")
point=$home/mnt
folder=--folder=$home/run
writers=
controller=

say() { printf '\n== %s\n' "$*"; }

clean_up() {
    trap '' INT TERM HUP
    # One that is just being started may miss the signal, but not the file; its number
    # may not have been noted yet.
    : >"$home/stop"
    for pid in $writers ${!:-} $controller; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    $PENSTOCK mount --unmount --force "$folder" "$point" 2>/dev/null || :
    rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Start a job: so many blocks of 256 KiB, so many seconds of work, until told to stop.
write() {
    $PENSTOCK run "$folder" --job "$1" -- sh -c '
        until [ -e "$4/stop" ]; do
            dd if=/dev/zero of="$4/mnt/$1" bs=256k count="$2" conv=notrunc \
                status=none || exit
            sleep "$3"
        done' sh "$1" "$2" "$3" "$home" &
    writers="$writers $!"
}

frames() {
    frame=0
    while [ "$frame" -lt "$1" ]; do
        sleep 2
        $PENSTOCK top --once "$folder"
        frame=$((frame + 2))
    done
}

moved() {
    $PENSTOCK mount --status "$folder" "$point" | sed -n 's/^written: \(.*\) in .*/\1/p'
}

mkdir "$home/backing" "$point"
say "a folder is mounted through a limit: a storage of 20 MB/s"
$PENSTOCK mount "$folder" --limit "20 MB/s" --background "$home/backing" "$point"

say "penstock serve controls what is written there; fair-share decides"
$PENSTOCK serve "$folder" --prefixes "$point" --bandwidth "20 MB/s" --lease "1 s" \
    2>"$home/serve.log" &
controller=$!
until $PENSTOCK ctl status "$folder" >"$home/status" 2>&1; do
    kill -0 "$controller" 2>/dev/null || { cat "$home/serve.log" >&2; exit 1; }
    sleep 0.2
done

say "two writers: climate writes 40 MiB, then works 1 s; training 10 MiB, then 0.3 s"
write climate 160 1
write training 40 0.3
frames "$seconds"

say "now greedy-yield decides: it serves who has progressed least, the other waits"
$PENSTOCK ctl policy greedy-yield "$folder"
frames "$seconds"
$PENSTOCK ctl explain climate "$folder"
$PENSTOCK ctl explain training "$folder"

say "the controller is killed (-9): a second later its grants end, writers go on"
before=$(moved)
kill -9 "$controller"
wait "$controller" 2>/dev/null || :
controller=
sleep 3
echo "written before: $before, now: $(moved)"

say "the writers finish what they do"
: >"$home/stop"
status=0
for pid in $writers; do wait "$pid" || status=$?; done
writers=
[ "$status" -eq 0 ] && say "both have ended well; $(moved) were written" ||
    say "a writer has failed: status $status"
exit "$status"
