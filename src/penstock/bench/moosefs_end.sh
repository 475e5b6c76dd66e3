#!/bin/sh
# SPDX-License-Identifier: MIT
# Let no process of a cluster wait for a mount whose own process is being killed.
#
#   moosefs_end.sh FOLDER <MOUNTINFO
#
# mfsmount looks at files in its own mount from time to time. If it is killed then, it
# waits for an answer of itself, for ever, and so does the end of the namespaces. The
# kernel answers when the connection is aborted. Only mounts of client nodes in FOLDER
# are looked at.
while read -r _ _ device _ point rest; do
    case $rest in *" - fuse "* | *" - fuse."*) ;; *) continue ;; esac
    case $point in "$1"/client*/mnt*) ;; *) continue ;; esac
    { echo 1 >"/sys/fs/fuse/connections/${device#*:}/abort"; } 2>/dev/null
done
exit 0
