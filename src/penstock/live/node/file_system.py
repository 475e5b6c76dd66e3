# SPDX-License-Identifier: MIT
"""Name and type of the file system of a folder.

Jobs whose file systems have the same name share bandwidth. The name of a network file
system is the same on all nodes: its type and its source, as in
``/proc/self/mountinfo``. That of a local one begins with a colon, before which the
controller writes the name of the node. The folder itself is not touched: a network file
system that hangs must not stop the agent.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.kernel_text import MOUNT_TABLE, MountEntry, mount_table

__all__ = ["file_system_type", "storage_name"]

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


def storage_name(folder: str, mounts: Path = MOUNT_TABLE) -> str:
    """Return the name of the file system of an absolute path; "" if it is not known.

    `mounts` is the table of mounts.
    """
    mount = _mount_of(folder, mounts)
    return _name(mount)[:_LONGEST] if mount else ""


def file_system_type(folder: str, mounts: Path = MOUNT_TABLE) -> str:
    """Return the type of the file system of an absolute path, e.g. ``ext4``.

    The result is ``unknown`` if the table of mounts does not say it.
    """
    mount = _mount_of(folder, mounts)
    return mount.kind if mount else "unknown"


def _mount_of(folder: str, mounts: Path) -> MountEntry | None:
    """Return the mount that holds an absolute path; None if it is not known."""
    if not folder.startswith("/"):
        return None
    # Users can have a thousand mounts: texts are compared, which is faster than paths.
    place = f"/{os.path.normpath(folder).lstrip('/')}/"
    best: MountEntry | None = None
    with suppress(OSError):
        for mount in mount_table(mounts):
            if not place.startswith(f"{mount.point.rstrip('/')}/"):
                continue
            # Of two mounts at one place, the later one hides the earlier one.
            if best is None or len(mount.point) >= len(best.point):
                best = mount
    return best


def _name(mount: MountEntry) -> str:
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
