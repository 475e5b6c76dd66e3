#!/bin/bash
# SPDX-License-Identifier: MIT
# Start moosefs.sh as the first process of new network and process namespaces.
#
#   moosefs_start.sh PARENT FOLDER ARGUMENTS_OF_MOOSEFS.SH...
#
# Must run in a new mount namespace, and be killed by the kernel when its parent, the
# process PARENT, ends. All of the cluster ends with this process.

# The parent may have ended before the kernel was told.
[ "$PPID" = "$1" ] || exit 1
here=${0%/*} folder=$2
shift

mountpoint -q /sys/fs/fuse/connections ||
    mount -t fusectl fusectl /sys/fs/fuse/connections || exit 1

# Outlives this process, whatever kills it: its input ends with it. It is outside of the
# process namespace, and so reads the mounts of both from a file that it has opened.
exec 9> >(
    trap '' INT TERM HUP
    exec setsid sh -c 'cat; exec sh "$0" "$1" <&7' \
        "$here/moosefs_end.sh" "$folder" 7</proc/self/mountinfo >/dev/null 2>&1
)
# By this, moosefs.sh sees the state of this process from inside.
exec 8</proc/$$
exec unshare --net --pid --fork --kill-child bash "$here/moosefs.sh" "$@"
