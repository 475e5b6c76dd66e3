#!/bin/sh
# SPDX-License-Identifier: MIT
# Print the newest installed Python that penstock supports, newer than 3.11.
# Looks in PATH, then in the versions of pyenv. Prints nothing if there is none.
set -eu

works() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

for version in 3.14 3.13 3.12; do
    for python in "$(command -v python$version || :)" \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python$version; do
        if [ -x "$python" ] && works "$python"; then
            echo "$python"
            exit 0
        fi
    done
done
