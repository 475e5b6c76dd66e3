# SPDX-License-Identifier: MIT
"""Ask a parallel file system over how many storage targets a folder is striped.

``mounts = "auto"`` of an application uses it: where every storage target has a mount of
its own, an application with files on n targets uses n mounts.

===========  =====================================  ================================
type         command                                number of targets
===========  =====================================  ================================
``lustre``   ``lfs getstripe -d FOLDER``            the largest ``stripe_count``
``beegfs``   ``beegfs-ctl --getentryinfo FOLDER``   the desired number
MooseFS      ``mfsfileinfo FILE...``                the servers of up to 16 files
===========  =====================================  ================================

MooseFS has no stripes: a chunk of a file is on one server (times its copies), and other
files on others. So files that exist are looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.kernel_text import MOUNT_TABLE, mount_table

__all__ = ["parse_beegfs", "parse_lustre", "parse_moosefs", "targets_of"]

_MOUNTS: Final = MOUNT_TABLE
#: Longest wait for a command.
_TIMEOUT_S: Final = 10.0
#: Most files of MooseFS that are looked at, and most entries that are searched.
_MAX_FILES: Final = 16
_MAX_ENTRIES: Final = 1000
_LUSTRE: Final = re.compile(r"stripe_count:\s*(-?\d+)")
_BEEGFS: Final = re.compile(r"Number of storage targets:.*: (\d+)\s*$")
_MOOSEFS: Final = re.compile(r"^\s*copy \d+: ([\w.:\[\]-]+):\d+ ")


def targets_of(folder: Path) -> int:
    """Return the number of storage targets of the files in a folder.

    Raises `InputError` if the file system cannot be asked or does not say.
    """
    kind, source = _file_system(folder)
    if kind == "lustre":
        found = parse_lustre(_run("lfs", "getstripe", "-d", str(folder)))
    elif kind == "beegfs":
        found = parse_beegfs(_run("beegfs-ctl", "--getentryinfo", str(folder)))
    elif kind.startswith("fuse") and (kind == "fuse.mfs" or source.startswith("mfs#")):
        files = [str(path) for path in _some_files(folder)]
        found = parse_moosefs(_run("mfsfileinfo", *files)) if files else 0
    else:
        raise _unknown(folder, f"{kind} cannot be asked how files are striped")
    if found < 1:
        raise _unknown(folder, f"{kind} does not say how its files are striped")
    return found


def parse_lustre(output: str) -> int:
    """Return the largest stripe count in the output of ``lfs getstripe``; 0: none.

    A count of -1 means all targets, whose number is not known here.
    """
    counts = [int(count) for count in _LUSTRE.findall(output)]
    return 0 if -1 in counts else max(counts, default=0)


def parse_beegfs(output: str) -> int:
    """Return the number of targets in the output of ``beegfs-ctl --getentryinfo``."""
    matches = (_BEEGFS.search(line) for line in output.splitlines())
    return max((int(match[1]) for match in matches if match), default=0)


def parse_moosefs(output: str) -> int:
    """Return the number of servers in the output of ``mfsfileinfo``."""
    matches = (_MOOSEFS.search(line) for line in output.splitlines())
    return len({match[1] for match in matches if match})


def _unknown(folder: Path, problem: str) -> InputError:
    return InputError(problem, where=str(folder), remedy="give a number of mounts")


def _file_system(folder: Path) -> tuple[str, str]:
    """Return the type and the source of the file system of a folder."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for mount in mount_table(_MOUNTS):
        if mount.device == number:
            return mount.kind, mount.source
    return "its file system", ""


def _some_files(folder: Path) -> Iterator[Path]:
    """Return some regular files below a folder that are not empty."""
    searched = files = 0
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            searched += 1
            path = Path(root, name)
            # The tool writes the name as it is: it must not look like more lines.
            if not str(path).isprintable():
                continue
            if path.is_file() and not path.is_symlink() and path.stat().st_size:
                files += 1
                yield path
            if files >= _MAX_FILES or searched >= _MAX_ENTRIES:
                return


def _run(*command: str) -> str:
    """Return the output of a command; raise `InputError` if it fails."""
    try:
        return _output(command)
    except OSError as error:
        reason = error.strerror or str(error)
    except subprocess.TimeoutExpired:
        reason = "no answer"
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or "").strip().partition("\n")[0] or "it failed"
    raise InputError(f"{command[0]}: {reason}", remedy="give a number of mounts")


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(  # noqa: S603 - a tool of the file system
        command,
        capture_output=True,
        text=True,
        # Names of files may be any bytes.
        errors="backslashreplace",
        check=True,
        timeout=_TIMEOUT_S,
    )
    return done.stdout
