# SPDX-License-Identifier: MIT
"""Name and type of the file system of a folder.

Jobs whose file systems have the same name share bandwidth. The name of a network file
system is the same on all nodes: its type and its source, as in
``/proc/self/mountinfo``. That of a local one begins with a colon, before which the
controller writes the name of the node. The folder itself is not touched: a network file
system that hangs must not stop the agent.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

__all__ = ["file_system_type", "storage_name"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
#: Longest name that a message may carry.
_LONGEST: Final = 200
#: Types whose source names the same storage on every node.
_NETWORK: Final = re.compile(
    r"nfs4?|cifs|smb3|ceph|lustre|gpfs|beegfs|orangefs|pvfs2|9p|afs|glusterfs"
    r"|wekafs|panfs"
    r"|fuse\.(mfs|moosefs|lizardfs|glusterfs|sshfs|ceph|ceph-fuse|juicefs|s3fs|gcsfuse"
    r"|rclone|unifyfs|dfuse|daos)"
)
#: A source such as ``server:/export`` names the same storage on every node, too.
_HOST: Final = re.compile(r"[^/:\s]+:.*")
#: Sources that are the same for all file systems of their type.
_NAMELESS: Final = frozenset({"beegfs_nodev", "dfuse", "none", "nodev"})
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    point: PurePosixPath
    kind: str
    source: str


def storage_name(folder: str, mounts: Path = _MOUNTS) -> str:
    """Return the name of the file system of an absolute path; "" if it is not known.

    `mounts` is the table of mounts.
    """
    mount = _mount_of(folder, mounts)
    return _name(mount)[:_LONGEST] if mount else ""


def file_system_type(folder: str, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system of an absolute path, e.g. ``ext4``.

    The result is ``unknown`` if the table of mounts does not say it.
    """
    mount = _mount_of(folder, mounts)
    return mount.kind if mount else "unknown"


def _mount_of(folder: str, mounts: Path) -> _Mount | None:
    """Return the mount that holds an absolute path; None if it is not known."""
    path = PurePosixPath(folder)
    if not path.is_absolute():
        return None
    best: _Mount | None = None
    with suppress(OSError):
        for line in mounts.read_text(errors="surrogateescape").splitlines():
            mount = _mount(line)
            if mount is None or not path.is_relative_to(mount.point):
                continue
            # Of two mounts at one place, the later one hides the earlier one.
            if best is None or len(mount.point.parts) >= len(best.point.parts):
                best = mount
    return best


def _name(mount: _Mount) -> str:
    if _NETWORK.fullmatch(mount.kind) or _HOST.fullmatch(mount.source):
        # A nameless one has to be mounted at the same place on all nodes.
        program = mount.kind.removeprefix("fuse.")
        nameless = mount.source in _NAMELESS or mount.source.lower() == program
        source = f"{mount.source} {mount.point}" if nameless else mount.source
        return _printable(f"{mount.kind} {source}")
    if mount.source.startswith("/dev/"):
        return _printable(f":{mount.source}")
    return _printable(f":{mount.point} ({mount.kind})")


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)


def _mount(line: str) -> _Mount | None:
    """Return the mount of a line of mountinfo (see proc(5)); None if it is no mount."""
    before, found, after = line.partition(" - ")
    fields, about = before.split(), after.split()
    if not found or len(fields) < 5 or len(about) < 2:
        return None
    return _Mount(PurePosixPath(_plain(fields[4])), about[0], _plain(about[1]))


def _plain(text: str) -> str:
    """Return a text without the octal escapes of mountinfo."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
