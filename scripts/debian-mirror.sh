#!/bin/sh
# SPDX-License-Identifier: MIT
# Print the address of the Debian archive that apt uses on this machine, with a slash at
# its end. Prints nothing if there is none.
set -eu
command -v apt-get >/dev/null || exit 0
apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    grep '/debian/$' | head -n 1
