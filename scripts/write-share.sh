#!/bin/sh
# SPDX-License-Identifier: MIT
# Write the manual pages and the completion scripts into a folder such as /usr/share.
#
#     sh scripts/write-share.sh PENSTOCK FOLDER
set -eu
penstock=$1
share=$2
mkdir -p "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$penstock" manual -o "$share/man/man1"
"$penstock" completion bash >"$share/bash-completion/completions/penstock"
"$penstock" completion zsh >"$share/zsh/site-functions/_penstock"
"$penstock" completion fish >"$share/fish/vendor_completions.d/penstock.fish"
