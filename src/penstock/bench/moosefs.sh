#!/bin/bash
# SPDX-License-Identifier: MIT
# Start a MooseFS cluster, run a command beside it, and end with the command.
#
#   moosefs.sh FOLDER SERVERS SERVER_BITS CLIENTS CLIENT_BITS MOUNT_OPTIONS COMMAND...
#
# Must be the first process of new namespaces (moosefs_start.sh); see moosefs.py, which
# says what the cluster looks like. The rates are in bits/s; 0: no limit. Descriptor 8 is
# the folder in /proc of the process outside that started this, and 9 is that process's.
set -eu
exec 9>&-
# This process is killed when that one ends. It may have ended before this was set.
grep -qs "^State:.[^ZX]" /proc/self/fd/8/status || exit 1
exec 8<&-
here=$(dirname "$0")
folder=$1 servers=$2 server_bits=$3 clients=$4 client_bits=$5 mount_options=$6
shift 6
labels=({A..Z})
master=192.0.2.10

# The last line of error output says what could not be done.
step="make a network (bridge, veth)"
on_exit() {
    local status=$?
    [ $status -eq 0 ] || [ -z "$step" ] ||
        echo "cannot $step; $(tail -n 1 log 2>/dev/null)" >&2
    sh "$here/moosefs_end.sh" "$folder" </proc/self/mountinfo
    exit $status
}
trap on_exit EXIT

# The servers must be on time, whatever else the machine does.
renice -n -15 -p $$ >/dev/null 2>&1 || true
echo -15 2>/dev/null >/proc/self/autogroup || true

mount -t proc proc /proc
# All files are in memory that only these namespaces see, and disappear with them.
mount -t tmpfs tmpfs "$folder"
cd "$folder"
ip link set lo up
ip link add name switch type bridge
ip address add $master/24 dev switch
ip link set switch up

# Make a node: a folder, and a network namespace with an address at the switch.
add_node() { # NAME NUMBER
    mkdir "$1"
    touch "$1/net"
    unshare --net="$1/net" true
    ip link add name "$1" type veth peer name eth0
    ip link set eth0 netns "$PWD/$1/net"
    ip link set "$1" master switch up
    on "$1" ip link set lo up
    on "$1" ip address add "192.0.2.$2/24" dev eth0
    on "$1" ip link set eth0 up
    # Connections send a whole request at once: what waits at a limited link goes in
    # the order of arrival. The links lose nothing. So a packet that is late, or that a
    # short one has overtaken, is not sent again, and TCP never sends less at a time.
    # (BBR, which some machines use, would: it takes a long queue for a slow link.)
    on "$1" ip route replace 192.0.2.0/24 dev eth0 \
        initcwnd 200 initrwnd 200 rto_min 2s
    # A request fits into the first receive window (64 KB by default). Else its end
    # would wait for an acknowledgement, and for requests that come in between.
    for setting in slow_start_after_idle=0 sack=0 congestion_control=reno \
        "rmem=4096 1048576 33554432"; do
        on "$1" sh -c "echo ${setting#*=} >/proc/sys/net/ipv4/tcp_${setting%%=*}"
    done
}

on() { # NODE COMMAND...
    nsenter --net="$1/net" -- "${@:2}"
}

# Both directions of the link of a node share one rate: all its packets pass ifb0. Data
# goes in the order of arrival and is never dropped. Short packets (less than 256 bytes:
# requests, acknowledgements) go first: on a real link that has two directions, they do
# not wait for data of the other one.
limit_link() { # NODE BITS
    [ "$2" -gt 0 ] || return 0
    on "$1" ip link add name ifb0 type ifb 2>/dev/null || true # may be there already
    on "$1" ip link set ifb0 up
    on "$1" tc qdisc add dev ifb0 root handle 1: htb default 3
    on "$1" tc class add dev ifb0 parent 1: classid 1:1 htb rate "$2bit" \
        burst 64kb quantum 65536
    for class in 2 3; do
        on "$1" tc class add dev ifb0 parent 1:1 classid 1:$class \
            htb rate "$(($2 / 2))bit" ceil "$2bit" prio $class quantum 65536
        on "$1" tc qdisc add dev ifb0 parent 1:$class pfifo limit 100000
    done
    on "$1" tc filter add dev ifb0 parent 1: protocol ip u32 \
        match u16 0 0xff00 at 2 flowid 1:2
    on "$1" tc qdisc add dev eth0 handle ffff: ingress
    on "$1" tc qdisc add dev eth0 root handle 1: htb
    for parent in ffff: 1:; do
        on "$1" tc filter add dev eth0 parent $parent protocol all u32 \
            match u32 0 0 action mirred egress redirect dev ifb0
    done
}

step="start the master and the chunk servers"
common="WORKING_USER=root
WORKING_GROUP=root
LOCK_MEMORY=0"

# By default the master begins after a minute to move files between servers.
mkdir master
printf 'MFSM NEW' >master/metadata.mfs
echo '* / rw,alldirs,admin,maproot=0:0' >master/exports.cfg
cat >master/master.cfg <<END
$common
DATA_PATH=$PWD/master
EXPORTS_FILENAME=$PWD/master/exports.cfg
REPLICATIONS_DELAY_INIT=86400
MATOML_LISTEN_HOST=$master
MATOCS_LISTEN_HOST=$master
MATOCL_LISTEN_HOST=$master
END
mfsmaster -c master/master.cfg start >log 2>&1

for number in $(seq "$servers"); do
    node=server$number address=192.0.2.$((10 + number))
    add_node "$node" $((10 + number))
    mkdir "$node/data" "$node/var"
    echo "$PWD/$node/data" >"$node/hdd.cfg"
    cat >"$node/server.cfg" <<END
$common
DATA_PATH=$PWD/$node/var
HDD_CONF_FILENAME=$PWD/$node/hdd.cfg
HDD_LEAVE_SPACE_DEFAULT=16MiB
BIND_HOST=$address
CSSERV_LISTEN_HOST=$address
MASTER_HOST=$master
LABELS=${labels[number - 1]}
END
    on "$node" mfschunkserver -c "$node/server.cfg" start >>log 2>&1
done

step="mount MooseFS"
for number in $(seq "$clients"); do
    node=client$number
    add_node "$node" $((100 + number))
    mkdir "$node/mnt"
    on "$node" mfsmount "$node/mnt" -H $master -o "$mount_options" >>log 2>&1
done

step="write to every chunk server"
# One copy of each file, and no waste bin: what is removed frees its space. New files in
# mnt/A go to the server with label A, and so on. A file can be written there once the
# server has told the master about itself.
on client1 mfssetgoal 1 client1/mnt >>log
on client1 mfssettrashtime 0 client1/mnt >>log
for number in $(seq "$servers"); do
    label=${labels[number - 1]}
    mkdir "client1/mnt/$label"
    on client1 mfsscadmin "$PWD/client1/mnt" create -m s "$label" "only_$label" >>log
    on client1 mfssetsclass "only_$label" "client1/mnt/$label" >>log
    for _ in $(seq 150); do
        { echo x >"client1/mnt/$label/probe"; } 2>/dev/null && break
        sleep 0.2
    done
    rm "client1/mnt/$label/probe"
done

step="mount the folder of every chunk server"
# An mfsmount serves ten requests at a time (the default of libfuse, which its option
# max_threads does not change). Others wait until one of the ten is answered, and so for
# servers that they do not use. Therefore each server has an mfsmount of its own.
for number in $(seq "$clients"); do
    for label in "${labels[@]:0:servers}"; do
        on "client$number" mfsmount "client$number/mnt/$label" \
            -H $master -S "/$label" -o "$mount_options" >>log 2>&1
    done
done

step="limit links (the kernel needs ifb, sch_htb, cls_u32 and act_mirred)"
for number in $(seq "$servers"); do limit_link "server$number" "$server_bits"; done
for number in $(seq "$clients"); do limit_link "client$number" "$client_bits"; done

step=
# Not `exec`: this shell is the first process, and all others end with it.
timeout --kill-after 5 7200 "$@"
