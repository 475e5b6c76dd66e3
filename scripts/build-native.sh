#!/bin/sh
# SPDX-License-Identifier: MIT
# Compile the C parts of penstock into this checkout (src/penstock/native/built), where
# penstock finds them. Only what has changed is compiled again.
#
# Needs gcc and CMake (`pip install cmake`); mounts need the headers of libfuse 3.
set -eu
cd "$(dirname "$0")/.."
build=build/native
log=$build/build.log

command -v cmake >/dev/null || {
    echo "build-native: there is no cmake; install it: pip install cmake" >&2
    exit 1
}
mkdir -p "$build"
# Processes that build at the same time take turns.
exec 9>"$build/.lock"
flock 9
{
    # Configure a fresh folder, and look again for headers of libfuse that were missing.
    { { [ -e "$build/CMakeCache.txt" ] &&
        [ -e src/penstock/native/built/libpenstock-mount.so ]; } ||
        cmake -U HAS_LIBFUSE -G "Unix Makefiles" -B "$build"; } &&
        cmake --build "$build" --parallel &&
        cmake --install "$build" --prefix src
} >"$log" 2>&1 9>&- || {
    grep -m 3 -A 3 -i error "$log" >&2 || tail -n 20 "$log" >&2
    exit 1
}
