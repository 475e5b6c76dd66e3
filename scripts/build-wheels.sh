#!/bin/sh
# SPDX-License-Identifier: MIT
# Build a release into dist/: the sdist, and from it a wheel for each machine. zig
# compiles, so that the wheels run with glibc 2.17 and newer; libfuse is in them.
#
#     sh scripts/build-wheels.sh PYTHON [MACHINE ..., default x86_64 aarch64]
#
# PYTHON has the packages build, wheel and ziglang (`make wheel` installs them).
set -eu
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
shift
[ $# -gt 0 ] || set -- x86_64 aarch64
ZIG=$("$python" -c 'import ziglang, pathlib as p; print(p.Path(ziglang.__file__).with_name("zig"))')
export ZIG
root=$(pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/penstock-wheels-XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

run() {
    "$python" -m "$@" >"$home/log" 2>&1 || {
        cat "$home/log" >&2
        exit 1
    }
}
source=$root/build/fetched/libfuse.tar.xz
sh scripts/fetch-libfuse.sh "$source"
rm -rf dist
run build --sdist --outdir dist .
for machine; do
    export ZIG_TARGET="$machine-linux-gnu.2.17" _PYTHON_HOST_PLATFORM="linux-$machine"
    SKBUILD_CMAKE_DEFINE="PENSTOCK_LIBFUSE=bundled;PENSTOCK_FUSE_SOURCE=$source"
    SKBUILD_CMAKE_DEFINE="$SKBUILD_CMAKE_DEFINE;CMAKE_TOOLCHAIN_FILE=$root/packaging/zig.cmake"
    SKBUILD_CMAKE_DEFINE="$SKBUILD_CMAKE_DEFINE;FETCHCONTENT_BASE_DIR=$root/build/fetched"
    export SKBUILD_CMAKE_DEFINE
    run pip wheel --no-deps --wheel-dir "$home" dist/penstock-*.tar.gz
    run wheel tags --remove --platform-tag "manylinux_2_17_$machine" "$home"/penstock-*.whl
    mv "$home"/penstock-*.whl dist
done
"$python" scripts/check_wheel.py dist/*.whl
