# SPDX-License-Identifier: MIT
"""Show and change live control: status, policy, bandwidth, limit, explain, off.

Users can see and explain their own jobs. Root and the user who started the daemon can
see all jobs and change settings. Changes take effect without a restart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from penstock.cli.live.options import (
    WHERE,
    add_live_options,
    live_settings,
    say_waiting,
)
from penstock.cli.live.users import (
    job_argument,
    job_labels,
    job_words,
    user_words,
    with_users,
)
from penstock.cli.options import add_json_option, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError, UnavailableError, UnknownNameError

if TYPE_CHECKING:
    from penstock.live.wire.messages import ControllerRequest

__all__ = [
    "SUMMARY",
    "faults_in_words",
    "grant_words",
    "in_words",
    "main",
    "mode_words",
    "rough_bandwidth",
    "setup_parser",
    "shared_words",
    "state_word",
    "throttled_line",
]

SUMMARY = "show and change live control"

_ACTIONS = {
    "status": (
        ("[JOB]",),
        "show all jobs, or one; `granted` is the rate now, `drawn` the mean of 0.5 s "
        "or more",
    ),
    "explain": (("JOB",), "explain the grant of a job"),
    "policy": (("POLICY",), "switch to another policy"),
    "bandwidth": (
        ("RATE",),
        "set the total bandwidth that is shared, or learn it (RATE: learn)",
    ),
    "limit": (
        ("JOB", "RATE"),
        'set the maximum grant of a job; "none" removes it',
    ),
    "hint": (("JOB", "VOLUME"), "announce the volume of the next I/O phase of a job"),
    "on": ((), "switch control on"),
    "dry-run": ((), "decide and count, but do not hold up any program"),
    "off": ((), "switch control off at once"),
}
#: Actions that are answered with the status afterwards.
_MODES = ("on", "dry-run", "off")
_RATE = "RATE"
#: A mean draw above this multiple of the present grant needs a note.
_FAST = 1.05
#: A learnt bandwidth that varies by less than this factor is shown without its range.
_VARIES = 1.1
_SLO = "show or change the SLOs of applications at a mount"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the actions of ``penstock ctl``; options stand before or after an action."""
    _add_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (words, meaning) in _ACTIONS.items():
        action = _add_action(actions, name, meaning)
        for word in words:
            name = word.strip("[]")
            is_optional = name != word
            action.add_argument(
                name.lower(),
                metavar=name,
                nargs="?" if is_optional else None,
                default=None,
            )
        _add_options(action)
    _setup_slo(_add_action(actions, "slo", _SLO))


def _add_action(actions: Any, name: str, meaning: str) -> argparse.ArgumentParser:
    # An option that is not given after the action must not replace the value that it
    # has before the action: hence no defaults.
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=meaning, description=meaning, argument_default=argparse.SUPPRESS
    )
    return action


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)
    add_live_options(parser, WHERE)


def _setup_slo(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "mount", metavar="MNT", help="mount point of a mount with --slo"
    )
    action.add_argument(
        "change",
        nargs="*",
        default=[],
        metavar="CHANGE",
        help="FILE: replace all SLOs; APPLICATION THROUGHPUT LATENCY: change one",
    )
    _add_options(action)


def main(arguments: argparse.Namespace) -> int:
    """Send a request to the daemon or to a mount; print the answer."""
    if arguments.action == "slo":
        return _slo(arguments)
    from penstock.live.wire.messages import StatusDocument

    reply, after = _ask(arguments)
    if isinstance(reply, StatusDocument):
        reply = _only(reply, arguments.job)
        document = reply.document()
        text = _table(reply)
    else:
        text = reply.words(job_words)
        document = {"penstock": 1, "answer": text}
    if after is not None:
        text += f": {_effect(after)}"
    if arguments.json:
        write_json(document, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(f"{text}\n")
    return 0


def _ask(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Return the answer of the daemon, and the status after a change of the mode.

    Without a daemon, the archive explains what a past job did.
    """
    from penstock.cli.live.history import ask_archive
    from penstock.live.archive.reader import ArchiveReader
    from penstock.live.wire.frames import connect
    from penstock.live.wire.messages import GetStatus

    settings, request = live_settings(arguments), _request_of(arguments)
    # The policy may have to be compiled first.
    timeout_s = 120.0 if arguments.action == "policy" else 10.0
    try:
        client = connect(settings, timeout_s, say_waiting)
    except UnavailableError:
        archive = settings.archive_folder
        if arguments.action != "explain" or not (
            archive and ArchiveReader(archive).exists()
        ):
            raise
        return ask_archive(settings, request), None
    with client:
        reply = client.ask(request, job_words)
        after = client.ask(GetStatus()) if arguments.action in _MODES else None
    return reply, after


def _only(status: Any, name: str | None) -> Any:
    """Return a status with the jobs of this name or key only; None: with all jobs."""
    import msgspec

    if name is None:
        return status
    key = job_argument(name)
    jobs = [
        line
        for line in status.jobs
        if line.job_name == name or f"{line.user}:{line.job_name}" == key
    ]
    if not jobs:
        raise UnknownNameError("job", name, {line.job_name for line in status.jobs})
    return msgspec.structs.replace(status, jobs=jobs)


_KIND_WORDS = {
    "reads": "reads",
    "writes": "writes",
    "mixed": "reads and writes at once",
}


def _request_of(arguments: argparse.Namespace) -> ControllerRequest:
    """Return the message that an action sends to the daemon."""
    from math import inf

    from penstock.live.wire import messages

    action = arguments.action
    if action == "status":
        return messages.GetStatus()
    if action == "explain":
        return messages.ExplainJob(job_argument(arguments.job))
    if action == "policy":
        return messages.SetPolicy(arguments.policy)
    if action == "bandwidth":
        learn = _is_word(arguments.rate, "learn")
        return messages.SetBandwidth(
            None if learn else _positive(arguments.rate, _RATE)
        )
    if action == "limit":
        none = _is_word(arguments.rate, "none")
        limit = inf if none else _positive(arguments.rate, _RATE)
        return messages.SetLimit(job_argument(arguments.job), limit)
    if action == "hint":
        volume_bytes = _positive(arguments.volume, "VOLUME")
        return messages.HintVolume(job_argument(arguments.job), volume_bytes)
    return messages.SetMode("control" if action == "on" else action)


def _is_word(text: str, word: str) -> bool:
    """Return True if a RATE is this word; refuse other words, and a rate of 0."""
    if text == "measure":
        raise InputError(
            "the bandwidth is measured only when the daemon starts",
            where=_RATE,
            remedy="penstock serve --bandwidth measure; or give a rate, or learn",
        )
    if text.strip()[:1].isalpha() and text != word:
        hint = f"did you mean {word}? " if get_close_matches(text, [word]) else ""
        raise InputError(
            f"{text!r} is not a bandwidth",
            where=_RATE,
            remedy=f'{hint}write a rate such as "20 MB/s", or {word}',
        )
    if word == "none" and text.strip(" 0.") == "":
        raise InputError(
            "a limit of 0 would stop the job for ever",
            where=_RATE,
            remedy='write a rate such as "1 MB/s"; none removes the limit',
        )
    return text == word


def _positive(text: str, where: str) -> float:
    """Parse a bandwidth (bytes/s) or a volume (bytes)."""
    from penstock.units import parse_bandwidth, parse_volume

    is_rate = where == _RATE
    value = _with_unit(parse_bandwidth if is_rate else parse_volume, text, where)
    if value <= 0.0:
        example = "1 GiB/s" if is_rate else "1 GiB"
        raise InputError(
            f"{value:g} is not positive", where=where, remedy=f'write e.g. "{example}"'
        )
    return value


def _with_unit(parse: Callable[[object], float], text: str, where: str) -> float:
    """Parse a quantity; an error names the argument."""
    try:
        return parse(text)
    except InputError as error:
        raise error.at(f"{where}: ") from None


def throttled_line(throttled: Any) -> str:
    """Return who takes too much of a daemon, and what that user has too little of."""
    name = user_words(throttled.user)
    number = "" if name == str(throttled.user) else f" ({throttled.user})"
    return (
        f"throttled: user {name}{number} on {throttled.node}: {throttled.what} "
        f"({throttled.times} times, last {throttled.age_s:.0f} s ago)"
    )


def _table(status: Any) -> str:
    """Return a status as lines of text, in the units of the shared bandwidth."""
    from penstock.units import format_bandwidth, format_volume

    shared = status.bandwidth or 0.0  # What is not known yet was not given: decimal.
    lines = [
        f"{mode_words(status.mode)}, policy {status.policy}, "
        f"{shared_words(status)} shared, "
        f"agents: {', '.join(status.agents) or 'none'}"
    ]
    for storage in status.storages:
        lines += _belief_lines(storage)
    lines += [f"fault: {fault}" for fault in faults_in_words(status)]
    lines += [throttled_line(each) for each in status.throttled]
    if not status.jobs:
        return "\n".join([*lines, "no jobs"])
    is_dry, is_off = status.mode == "dry-run", status.mode == "off"
    delay = "would wait" if is_dry else "held up"
    rows = [("job", "state", "granted", "drawn", "moved", "staged", delay, "yield")]
    rows += [
        (
            line.job_name,
            state_word(line, status.mode),
            grant_words(line, shared),
            "-" if is_off else format_bandwidth(line.drawn_bytes_per_s, shared),
            format_volume(line.moved_bytes, shared),
            format_volume(line.staged_bytes, shared) if line.staged_bytes else "-",
            f"{line.would_hold_up_s if is_dry else line.held_up_s:.1f} s",
            f"{line.progress_yield:.3f}",
        )
        for line in status.jobs
    ]
    table = format_table(with_users(rows, [line.user for line in status.jobs]))
    return "\n".join([*lines, table.rstrip("\n"), *_notes(status)])


def _notes(status: Any) -> list[str]:
    """Return what a reader of the table may wonder about."""
    if status.mode == "off":
        return ["control is off: what jobs read and write is not counted"]
    return _limit_notes(status) + _draw_notes(status)


def _limit_notes(status: Any) -> list[str]:
    from penstock.units import format_bandwidth

    keys = [f"{line.user}:{line.job_name}" for line in status.jobs]
    label = job_labels(keys)
    return [
        f"{label(key)} is limited to {format_bandwidth(line.limit)}: what the limit "
        "takes does not lower its yield"
        for key, line in zip(keys, status.jobs, strict=True)
        if line.limit is not None
    ]


def _draw_notes(status: Any) -> list[str]:
    if any(
        line.active and line.grant and line.drawn_bytes_per_s > _FAST * line.grant
        for line in status.jobs
    ):
        return ["drawn is a mean of the last 0.5 s or more, granted is the rate now"]
    return []


def in_words(text: str, status: Any) -> str:
    """Return a text of a status with the keys of its jobs as USER:NAME."""
    from penstock.live.wire.messages import with_job_keys

    keys = {f"{line.user}:{line.job_name}" for line in status.jobs}
    return with_job_keys(text, [key for key in keys if key in text], job_words)


def faults_in_words(status: Any) -> list[str]:
    """Return the faults of a status, with jobs as USER:NAME."""
    return [in_words(fault, status) for fault in status.faults]


def _effect(status: Any) -> str:
    """Return what the mode means for jobs."""
    if status.mode == "off":
        return "no call is held up"
    shared = shared_words(status)
    the = "the " if shared[:1].isalpha() else ""
    shares = f"policy {status.policy} shares {the}{shared}"
    if status.mode == "control":
        return shares
    return f"{shares} on paper, and no call is held up"


def _belief_lines(storage: Any) -> list[str]:
    """Return what is believed about a storage whose bandwidth is learnt, and why."""
    from penstock.units import format_time

    if not storage.learns:
        return []
    name = f"{storage.name}: " if storage.name else ""
    if not storage.beliefs:
        met = storage.active_jobs > 1
        why = "it is being learnt" if met else "no two jobs have met"
        return [f"{name}bandwidth not known yet, {why}"]
    return [
        f"{name}{_belief_words(belief)} for {_KIND_WORDS[kind]}: {belief.why}"
        + ("" if belief.age_s is None else f", {format_time(belief.age_s)} ago")
        for kind, belief in storage.beliefs.items()
    ]


def _belief_words(belief: Any) -> str:
    """Return a learnt bandwidth with two digits, and its range if it varies."""
    text = f"about {rough_bandwidth(belief.bandwidth)}"
    lowest, highest = belief.lowest, belief.highest
    if lowest is None or highest is None or highest < _VARIES * lowest:
        return text
    least, most = rough_bandwidth(lowest), rough_bandwidth(highest)
    return f"{text} ({least} to {most} in the last minute)"


def rough_bandwidth(rate_bytes_per_s: float) -> str:
    """Return a bandwidth with two digits."""
    from penstock.units import format_bandwidth

    return format_bandwidth(float(f"{rate_bytes_per_s:.1e}"), 0.0)


def shared_words(status: Any) -> str:
    """Return which bandwidth is shared: a number, or one that is learnt."""
    from penstock.units import format_bandwidth

    is_learnt = any(storage.learns for storage in status.storages)
    if is_learnt or status.bandwidth is None:
        return "learnt bandwidth"
    return format_bandwidth(status.bandwidth)


def grant_words(line: Any, shared: float | None) -> str:
    """Return what an active job may draw."""
    from penstock.units import format_bandwidth

    if not line.active:
        return "-"
    return "free" if line.grant is None else format_bandwidth(line.grant, shared)


def mode_words(mode: str) -> str:
    """Return the mode in words: control on, dry-run, control off."""
    return "control on" if mode == "control" else mode.replace("off", "control off")


def state_word(line: Any, mode: str) -> str:
    """Return the state of a job: works, waits, lends or moves; off without control."""
    if mode == "off":
        return "off"
    if not line.active:
        return "works"
    if line.grant == 0.0:
        return "waits"
    return "lends" if line.lent else "moves"


# --- SLOs of a mount ------------------------------------------------------------------


def _slo(arguments: argparse.Namespace) -> int:
    """Show the SLOs of a mount, after a change if one is given."""
    from penstock.cli.live.daemons.mount import scheduler_lines
    from penstock.mount.control import GetMountStatus, SetSlo, send_command
    from penstock.mount.points import penstock_mount_at

    folder = live_settings(arguments).home / "mounts"
    entry = penstock_mount_at(arguments.mount)
    status = send_command(folder, entry, GetMountStatus()).scheduling
    if status is None:
        raise InputError(
            "is mounted without --slo",
            where=arguments.mount,
            remedy="unmount, and mount it with --slo FILE",
        )
    if arguments.change:
        document = _changed_document(arguments.change, status.document)
        try:
            status = send_command(folder, entry, SetSlo(document)).scheduling
        except InputError as error:
            if len(arguments.change) > 1:
                raise
            # The mistake is in the file; the mount keeps its last good settings.
            raise InputError(error.what, where=arguments.change[0]) from None
    if arguments.json:
        import msgspec

        write_json({"penstock": 1, **msgspec.to_builtins(status)}, arguments.json)
    if arguments.json != "-" and status is not None:
        sys.stdout.write("\n".join(scheduler_lines(status)) + "\n")
    return 0


def _changed_document(change: list[str], before: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the ``--slo`` file after a change."""
    from penstock.mount.slo_settings import read_document
    from penstock.units import parse_bandwidth, parse_time

    if len(change) == 1:
        after = read_document(change[0])
        if not after:
            raise InputError(
                "is empty", where=change[0], remedy="name at least one application"
            )
        return after
    if len(change) != 3:
        raise InputError(
            f"{len(change)} words given for the change",
            remedy="give a FILE, or APPLICATION THROUGHPUT LATENCY",
        )
    name, throughput, latency = change
    if name not in before["applications"]:
        raise UnknownNameError("application", name, before["applications"])
    _with_unit(parse_bandwidth, throughput, "THROUGHPUT")
    _with_unit(parse_time, latency, "LATENCY")
    slo = before["applications"][name] | {"throughput": throughput, "latency": latency}
    return before | {"applications": before["applications"] | {name: slo}}
