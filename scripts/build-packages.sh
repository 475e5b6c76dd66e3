#!/bin/sh
# SPDX-License-Identifier: MIT
# Make a deb and an rpm into dist/, from the wheel for this machine there (`make wheel`)
# and what it needs. Both hold an environment of Python 3.11 in /usr/lib/penstock.
#
#     sh scripts/build-packages.sh PYTHON
set -eu
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
umask 022
machine=$(uname -m)
wheel=$(echo dist/penstock-*_"$machine".whl)
[ -e "$wheel" ] || { echo "build-packages: there is no wheel; run \`make wheel\`" >&2; exit 1; }
version=$(basename "$wheel" | cut -d- -f2)
home=$(mktemp -d "${TMPDIR:-/tmp}/penstock-packages-XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tree=$home/tree
site=$tree/usr/lib/penstock/lib/python3.11/site-packages

# --- The files of both ------------------------------------------------------------------
mkdir -p "$site" "$tree/usr/lib/penstock/bin" "$tree/usr/bin" "$tree/etc/penstock" \
    "$tree/var/lib/penstock" "$tree/usr/lib/systemd/system"
"$python" -m pip --quiet --disable-pip-version-check install --target "$site" \
    --python-version 3.11 --only-binary :all: --no-compile "$wheel"
rm -rf "$site/bin"
# A virtual environment by hand: the interpreter is that of the system.
ln -s /usr/bin/python3.11 "$tree/usr/lib/penstock/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n' \
    >"$tree/usr/lib/penstock/pyvenv.cfg"
cat >"$tree/usr/bin/penstock" <<'SCRIPT'
#!/usr/lib/penstock/bin/python3
import sys
from penstock.cli import main
sys.exit(main())
SCRIPT
chmod 755 "$tree/usr/bin/penstock"
# Root would leave compiled files behind.
if command -v python3.11 >/dev/null; then
    python3.11 -m compileall -q -s "$tree" -p / --invalidation-mode unchecked-hash "$site"
fi
install -m 644 packaging/penstock.toml "$tree/etc/penstock"
sh scripts/write-share.sh "$(dirname "$python")/penstock" "$tree/usr/share"
sed 's|/usr/local/bin|/usr/bin|; /^#$/d; /^#     install/d; /^# Adjust/d' \
    examples/penstock.service >"$tree/usr/lib/systemd/system/penstock.service"

# --- deb --------------------------------------------------------------------------------
if command -v dpkg-deb >/dev/null; then
    cp -a "$tree" "$home/deb"
    mkdir "$home/deb/DEBIAN"
    echo /etc/penstock/penstock.toml >"$home/deb/DEBIAN/conffiles"
    cat >"$home/deb/DEBIAN/control" <<CONTROL
Package: penstock
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: penstock
Depends: python3.11, libc6 (>= 2.28)
Suggests: fuse3
Section: admin
Description: shares the bandwidth of storage among jobs
 The agent, the controller, penstock run, ctl, drain and mount.
CONTROL
    dpkg-deb --root-owner-group -Zgzip -b "$home/deb" dist >/dev/null
else
    echo "build-packages: no deb: there is no dpkg-deb" >&2
fi

# --- rpm --------------------------------------------------------------------------------
if command -v rpmbuild >/dev/null; then
    rpmbuild -bb --quiet --define "_topdir $home/rpm" --define "_rpmdir $PWD/dist" \
        --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
        --define "version $version" --define "tree $tree" --define '_build_id_links none' \
        packaging/penstock.spec 2>"$home/log" || { cat "$home/log" >&2; exit 1; }
else
    echo "build-packages: no rpm: there is no rpmbuild" >&2
fi
ls -l dist/*.deb dist/*.rpm 2>/dev/null | sed 's/.* dist/dist/'
