#!/bin/sh
# SPDX-License-Identifier: MIT
# Show two real writers on a mount of 20 MB/s: under fair-share, then under greedy-yield;
# then the controller is killed and both finish. Needs FUSE (penstock mount says what is
# missing), but no root where FUSE needs none. Leaves nothing behind, however it ends.
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
    # A writer that is just being started may miss the signal, but it sees the file. Its
    # process number may not be in $writers yet; the shell has it in $!.
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

# write JOB BLOCKS SECONDS: write blocks of 256 KiB, work for some seconds, and repeat.
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

say "now greedy-yield decides: it serves the job that has progressed least, the other one waits"
$PENSTOCK ctl policy greedy-yield "$folder"
frames "$seconds"
$PENSTOCK ctl explain climate "$folder"
$PENSTOCK ctl explain training "$folder"

say "the controller is killed (-9): its grants end a second later, and the writers continue"
before=$(moved)
kill -9 "$controller"
wait "$controller" 2>/dev/null || :
controller=
sleep 3
echo "written before: $before, now: $(moved)"

say "the writers finish"
: >"$home/stop"
status=0
for pid in $writers; do wait "$pid" || status=$?; done
writers=
[ "$status" -eq 0 ] && say "both have ended well; $(moved) were written" ||
    say "a writer has failed: status $status"
exit "$status"
