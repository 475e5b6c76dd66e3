#!/bin/sh
# SPDX-License-Identifier: MIT
# Build the wheel, install it into a folder of its own, and use it from there: data files
# and compiled C parts must be in the wheel. Dependencies come from the given environment.
#
#     sh scripts/try-wheel.sh [PYTHON, default .venv/bin/python]
set -eu
python=$(realpath -s "${1:-.venv/bin/python}")
home=$(mktemp -d "${TMPDIR:-/tmp}/penstock-wheel-XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

pip() { "$python" -m pip --quiet --disable-pip-version-check "$@"; }
pip wheel --no-deps --wheel-dir "$home" .
pip install --no-deps --target "$home/site" "$home"/penstock-*.whl

# From here on, penstock is the installed copy, not the working tree.
export PYTHONPATH="$home/site"
cd "$home"
penstock() { "$python" -m penstock "$@" >"$home/output" || { cat "$home/output"; exit 1; }; }

place=$("$python" -c 'import penstock; print(penstock.__file__)')
case $place in "$home"/*) ;; *) echo "try-wheel: imported $place" >&2; exit 1 ;; esac
penstock policies
penstock compare --instances 1 --policy fcfs --policy fair-share --set horizon=20000
penstock generate apex -o "$home/apex.json"
penstock check /bin/sh
penstock reproduce p3-fig1a --scale smoke -o "$home/figures"
echo "the wheel works: $(basename "$home"/penstock-*.whl)"
