#!/bin/sh
# SPDX-License-Identifier: MIT
# Have the source of libfuse in FILE: download it, as Debian 12 has it, with apt from the
# archive that apt uses on this machine. CMakeLists.txt checks the sum again.
#
#     sh scripts/fetch-libfuse.sh FILE
set -eu
file=$1 name=fuse3_3.14.0.orig.tar.xz
sum=96115b2a8ff34bd1e0c7b00c5dfd8297571d7e165042b94498c9a26356a9a70a
echo "$sum  $file" | sha256sum --check --status 2>/dev/null && exit 0
mirror=$(sh "$(dirname "$0")/debian-mirror.sh")
mkdir -p "$(dirname "$file")"
fetch() {
    timeout 300 /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file \
        "${mirror}pool/main/f/fuse3/$name" "$file" "SHA256:$sum" >/dev/null
}
{ [ -n "$mirror" ] && fetch; } || {
    echo "fetch-libfuse: cannot download $name: put it there as $file" >&2
    exit 1
}
