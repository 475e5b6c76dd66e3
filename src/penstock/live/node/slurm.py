# SPDX-License-Identifier: MIT
"""Slurm: slurmd registers jobs with the agent and puts their tasks under control.

``penstock serve --make-slurm FOLDER`` writes four scripts and the preload library:

prolog
    Runs as root on every node of a job. It asks the agent of the node for the page of
    the job (this module), and writes the answer to ``slurm/JOB`` in the agent's folder.
epilog
    Removes the page, its note and the answer. The agent notices this and ends the job.
epilog-comment
    Runs as root, if the site wants it. On the first node of a job it leaves a process
    behind that writes the line of ``penstock report --line`` to its AdminComment.
task-prolog
    Runs before every task, as its user. It prints the environment variables with which
    the preload library finds the page. It starts no Python and contacts no process.

User, account and number of nodes come from slurmd, never from a program. The number of
a job becomes a part of a path only if it is a number. All four scripts always succeed:
if no agent answers within `ANSWER_S`, the prolog writes one line to ``slurm.log`` and
the job runs without control.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from penstock.errors import InputError, PenstockError
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import PageAssigned, RegisterJob
from penstock.native.files import shim_path

__all__ = ["ANSWER_S", "SCRIPTS", "main", "make_scripts", "register"]

_LOG: Final = logging.getLogger("penstock.slurm")
#: How long the prolog waits for the agent (s).
ANSWER_S: Final = 2.0
#: After this time the prolog is killed (s).
_LIMIT_S: Final = 5
#: How long after the end of a job its report is asked for (s).
_COMMENT_DELAY_S: Final = 3
#: After this time the report, or Slurm's command, is killed (s).
_COMMENT_LIMIT_S: Final = 20
_LOG_BYTES: Final = 1 << 20
#: How long the prolog waits for the name of a job (s).
_NAME_S: Final = 1.0
#: Number of characters that are taken of a name.
_NAME_LENGTH: Final = 200
#: Name of a node, before a comma outside brackets: see `_first_node`.
_FIRST_NODE: Final = re.compile(r"(?:[^\[,]|\[[^\]]*\])+")
_BRACKETS: Final = re.compile(r"\[(\w+)[^\]]*\]")
#: What bytes that are not UTF-8 become in Python's variables of the environment.
_NOT_UTF8: Final = re.compile("[\ud800-\udfff]")
_SYSTEM_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"

_PROLOG: Final = """\
#!/bin/sh
# Registers a job with the agent of its node. The job starts even if this fails.
export PATH={path}
exec </dev/null >/dev/null 2>&1
timeout -k 1 {limit} {python} -I -m penstock.live.node.slurm {folder}
exit 0
"""

_EPILOG: Final = """\
#!/bin/sh
# Removes the page of a job; the agent of the node notices this.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
case ${{SLURM_JOB_ID:-none}} in *[!0-9]*) exit 0 ;; esac
answer={folder}/slurm/$SLURM_JOB_ID
[ -r "$answer" ] || exit 0
read -r page <"$answer"
rm -f "${{page%.page}}.note" "$page" "$answer" 2>/dev/null
exit 0
"""

_COMMENT: Final = """\
#!/bin/sh
# Writes what a job did to its AdminComment. Slurm does not wait for that.
export PATH={path}
exec </dev/null >/dev/null 2>&1
case ${{SLURM_JOB_ID:-none}} in *[!0-9]*) exit 0 ;; esac
[ -n "$SLURM_JOB_UID" ] && [ -n "$SLURMD_NODENAME" ] || exit 0
nodes=${{SLURM_JOB_NODELIST:-$SLURM_NODELIST}}
first=$(timeout 5 scontrol show hostnames "$nodes" | head -n 1)
[ "$first" = "$SLURMD_NODENAME" ] || exit 0
comment() {{
    # The agents notice the end of a job within a third of a lease.
    sleep {delay}
    line=$(timeout -k 1 {report_limit} {python} -I -m penstock report --line \\
        --folder={folder} "$SLURM_JOB_UID:$SLURM_JOB_ID")
    [ -n "$line" ] || return
    # scontrol refuses to change a job that has ended; the database does not.
    timeout -k 1 {report_limit} sacctmgr --immediate modify job where \\
        "jobid=$SLURM_JOB_ID" set "admincomment=$line"
}}
if [ "$1" = detached ]; then
    comment
else
    # slurmd kills the process group of an epilog that has ended: leave this group.
    setsid sh -c '"$1" detached &' sh "$0"
fi
exit 0
"""

_TASK_PROLOG: Final = """\
#!/bin/sh
# Prints the environment variables that put a task under control.
library={library}
case ${{SLURM_JOB_ID:-none}} in *[!0-9]*) exit 0 ;; esac
answer={folder}/slurm/$SLURM_JOB_ID
[ -r "$answer" ] && [ -r "$library" ] || exit 0
{{ read -r page && read -r prefixes; }} <"$answer" || exit 0
case ${{LD_PRELOAD:-}} in
*"$library"*) ;;
*) LD_PRELOAD=$library${{LD_PRELOAD:+:$LD_PRELOAD}} ;;
esac
echo "export LD_PRELOAD=$LD_PRELOAD"
echo "export PENSTOCK_PAGE=$page"
echo "export PENSTOCK_CONTROLLED=$prefixes"
exit 0
"""

#: Name of a script -> its text.
SCRIPTS: Final = {
    "prolog": _PROLOG,
    "epilog": _EPILOG,
    "epilog-comment": _COMMENT,
    "task-prolog": _TASK_PROLOG,
}
_LIBRARY: Final = "libpenstock.so"


# --- Installation ---------------------------------------------------------------------


def make_scripts(folder: Path, home: Path) -> None:
    """Write the scripts and the library into `folder`.

    `home` is the folder of the agents; ``%n`` in it stands for the name of the node, as
    in ``slurm.conf``.
    """
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder = folder.resolve()
        if folder.stat().st_mode & 0o022:
            raise InputError(
                "other users can write to this folder, and root would run their files",
                where=str(folder),
                remedy="chmod 755 it",
            )
        _write_file(folder / _LIBRARY, shim_path().read_bytes())
        for name, text in SCRIPTS.items():
            _write_file(folder / name, _fill_in(text, folder, home).encode())
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            where=str(error.filename or folder),
            remedy="give a folder that root can write to",
        ) from None


def _fill_in(text: str, folder: Path, home: Path) -> str:
    parts = str(home.absolute()).split("%n")
    place = '"$SLURMD_NODENAME"'.join(map(shlex.quote, parts))
    return text.format(
        limit=_LIMIT_S,
        delay=_COMMENT_DELAY_S,
        report_limit=_COMMENT_LIMIT_S,
        path=_search_path(),
        python=shlex.quote(sys.executable),
        folder=place,
        library=shlex.quote(str(folder / _LIBRARY)),
    )


def _search_path() -> str:
    """Return the value of PATH in the scripts, for a shell.

    slurmd gives its scripts no PATH. Slurm's commands are looked for where they are
    found now, which may be a folder of their own.
    """
    squeue = shutil.which("squeue")
    tools = f"{shlex.quote(str(Path(squeue).absolute().parent))}:" if squeue else ""
    return f"{tools}${{PATH:+$PATH:}}{_SYSTEM_PATH}"


def _write_file(path: Path, data: bytes, mode: int = 0o755) -> None:
    """Write a file atomically."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(name).chmod(mode)
        shutil.move(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


# --- The prolog -----------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Register the job described by slurmd's environment; always return 0."""
    home = Path(arguments[0])
    try:
        _log_to(home / "slurm.log")
        register(home, os.environ)
    except (PenstockError, OSError) as error:
        job = os.environ.get("SLURM_JOB_ID", "?")
        _LOG.warning("job %s runs without control: %s", job, error)
    return 0


def register(home: Path, environment: Mapping[str, str]) -> None:
    """Ask the agent in `home` for the page of a job, and write its answer to a file."""
    job = _job_from(environment)
    with Client(home / "agent.sock", ANSWER_S) as client:
        reply = client.ask(job)
    if not isinstance(reply, PageAssigned):
        raise InputError(
            "the agent gave no page", remedy="use the same version of penstock for both"
        )
    folder = home / "slurm"
    folder.mkdir(mode=0o711, exist_ok=True)
    # Owned by root, because the epilog removes the files that it names. The first line
    # is written at once: the epilog needs it to end the job, and to follow the links of
    # a user may take for ever.
    answer = folder / job.job_name
    _write_file(answer, f"{reply.page}\n".encode(), 0o644)
    prefixes = ":".join(map(os.path.realpath, reply.prefixes))
    # A link may lead to a folder whose name is not UTF-8.
    _write_file(answer, os.fsencode(f"{reply.page}\n{prefixes}\n"), 0o644)


def _job_from(environment: Mapping[str, str]) -> RegisterJob:
    """Return the job that the environment of slurmd describes."""
    return RegisterJob(
        job_name=str(_number(environment, "SLURM_JOB_ID")),
        user=_number(environment, "SLURM_JOB_UID"),
        group=_number(environment, "SLURM_JOB_GID"),
        account=_valid_name(environment.get("SLURM_JOB_ACCOUNT", "")),
        nodes=_number(environment, "SLURM_JOB_NUM_NODES", "0"),
        folder=_valid_folder(environment.get("SLURM_JOB_WORK_DIR", "")),
        # Not every version of Slurm tells the prolog the QOS.
        qos=_valid_name(
            environment.get("SLURM_JOB_QOS")
            or environment.get("SLURM_JOB_PARTITION", "")
        ),
        history_name=_valid_name(_name_of_job(environment)),
    )


def _name_of_job(environment: Mapping[str, str]) -> str:
    """Return the name that the user has given the job; "" if it is not known here.

    Few versions of Slurm tell it to the prolog. The others are asked, on the first node
    of the job only: a large job must not send a thousand questions to slurmctld.
    """
    if name := environment.get("SLURM_JOB_NAME"):
        return name
    squeue = shutil.which("squeue")
    nodes = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    first = _first_node(nodes or "")
    if squeue is None or not first or first != environment.get("SLURMD_NODENAME"):
        return ""
    number = environment.get("SLURM_JOB_ID", "")
    command = [squeue, "--noheader", f"--jobs={number}", "--format=%j"]
    try:
        done = subprocess.run(  # noqa: S603 - Slurm's own program, and a number
            command, capture_output=True, check=True, timeout=_NAME_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    # For an array, one line per task: all have the same name.
    return os.fsdecode(done.stdout).strip().partition("\n")[0]


def _first_node(nodes: str) -> str:
    """Return the first node of a list of Slurm; "" if there is none.

    For example, n1 of ``n[1-4,7],m2``, and rack1n01-ib of ``rack[1-2]n[01-04]-ib``.
    """
    first = _FIRST_NODE.match(nodes)
    return _BRACKETS.sub(r"\1", first[0]) if first else ""


def _valid_name(text: str) -> str:
    """Return a name that can be sent: names must not keep a job from being registered.

    Bytes that are not UTF-8 are replaced, and a long name is cut.
    """
    return text.encode(errors="surrogateescape").decode(errors="replace")[:_NAME_LENGTH]


def _valid_folder(text: str) -> str:
    """Return a folder that can be sent: the nearest one above whose path is UTF-8."""
    before = _NOT_UTF8.split(text, maxsplit=1)[0]
    if before == text:
        return text
    folder = before.rpartition("/")[0] or "/"
    _LOG.warning("folder %a is not UTF-8; %r is controlled instead", text, folder)
    return folder


def _number(environment: Mapping[str, str], name: str, default: str = "") -> int:
    text = environment.get(name, default)
    if not re.fullmatch("[0-9]{1,18}", text):
        raise InputError(
            f"{name} is {text!r}, not a number",
            remedy="this program must be started by slurmd, as a prolog",
        )
    return int(text)


def _log_to(path: Path) -> None:
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    _LOG.addHandler(handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
