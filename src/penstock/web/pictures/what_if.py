# SPDX-License-Identifier: MIT
"""What another policy would have done to the last jobs, by simulation.

The page asks this before an operator changes the policy. The operations of the archive
between two instants are simulated, each storage for itself, under the policy that ran
and under the new one. Both are simulated, so that the difference comes from the policy
alone and not from what a simulation leaves out.

A job that began earlier counts from the first instant on, and so does an operation,
with the part of its volume that is in proportion to the time. Operations under way are
not in the archive: the daemon tells them, and they end now. The simulation runs in a
process of its own (`ask_what_if`), because it computes without a pause.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from penstock.errors import (
    InputError,
    MissingExtraError,
    PenstockError,
    UnavailableError,
)
from penstock.live.archive.reader import ArchivedRun, ArchiveReader
from penstock.live.control.past import CompletedOperation
from penstock.live.daemon.killing import kill_process, start_process
from penstock.live.wire.messages import (
    PastJob,
    ReportedOperation,
    RunWithOperations,
)
from penstock.web.pictures.past_picture import POINTS
from penstock.web.pictures.picture import MOST_SERIES

if TYPE_CHECKING:
    from penstock.sim import Run

__all__ = ["ask_what_if", "main", "what_if"]

#: Most operations that are simulated.
_MOST_OPERATIONS: Final = 50_000
#: How long the simulation may take; the first one compiles the engine (s).
_LIMIT_S: Final = 120.0
_USAGE: Final = 2

_Operations = dict[ArchivedRun, list[CompletedOperation]]


async def ask_what_if(request: dict[str, Any]) -> dict[str, Any]:
    """Return the document of `what_if`, computed in another process.

    Parameters
    ----------
    request
        The arguments of `what_if` by their names; the folder is a text.

    Raises
    ------
    InputError
        If the jobs or the policy cannot be simulated.
    UnavailableError
        If the simulation takes too long, or fails.
    """
    # -P: what lies in the working directory is not imported.
    process = await start_process(
        *(sys.executable, "-P", "-m", "penstock.web.pictures.what_if"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        text, _ = await asyncio.wait_for(
            process.communicate(json.dumps(request).encode()), _LIMIT_S
        )
    except TimeoutError:
        raise UnavailableError(
            "the simulation takes too long", remedy="try another policy"
        ) from None
    finally:
        if process.returncode is None:
            await kill_process(process)
    if process.returncode not in (0, _USAGE):
        raise UnavailableError("the simulation failed", remedy="see penstock report")
    document: dict[str, Any] = json.loads(text)
    if "error" in document:
        raise InputError(document["error"])
    return document


def main() -> int:
    """Answer the request on standard input; return the exit status."""
    request = json.loads(sys.stdin.read())
    try:
        document = what_if(Path(request.pop("folder")), **request)
    except PenstockError as error:
        document = {"error": str(error)}
    except ModuleNotFoundError as error:
        missing = MissingExtraError.of(error)
        if missing is None:
            raise
        document = {"error": str(missing)}
    sys.stdout.write(json.dumps(document))
    return _USAGE if "error" in document else 0


def what_if(
    folder: Path,
    policy: str,
    present: str,
    begin_s: float,
    end_s: float,
    *,
    under_way: Sequence[Any] = (),
    compiled: bool = True,
) -> dict[str, Any]:
    """Return what a policy would have given to the jobs between two instants.

    ``jobs`` has the yields of each job, ``present`` and ``policy``, and ``actual``, the
    one that it really had; the worst-off under the present policy first. ``left_out``
    are the keys of jobs that run and have moved nothing in this time. ``picture`` is
    the simulated one under the new policy, in the form of `picture`.

    Parameters
    ----------
    folder
        The archive.
    policy, present
        The new policy, and the one that runs.
    under_way
        Jobs that run, with their present operations: `RunWithOperations` as JSON.
    compiled
        As in `simulate`.
    """
    present_runs = msgspec.convert(under_way, list[RunWithOperations])
    storages = _operations_by_storage(folder, begin_s, end_s, present_runs)
    yields: dict[str, dict[str, float]] = {"present": {}, "policy": {}, "actual": {}}
    rates: dict[str, list[float]] = {}
    bandwidth = 0.0
    for operations in storages:
        keys = [run.job_key for run in operations]
        for past, done in operations.items():
            worst = yields["actual"].get(past.job_key, 1.0)
            lost_s = sum(each.lost_s for each in done)
            reached = replace(past, lost_s=lost_s).progress_yield(end_s)
            yields["actual"][past.job_key] = min(worst, reached)
        for which, name in (("present", present), ("policy", policy)):
            run, origin_s = _simulated(operations, name, compiled=compiled)
            for key, reached in zip(keys, run.yields.tolist(), strict=True):
                # Of a job that ran twice, the worse run counts.
                worst = yields[which].get(key, 1.0)
                yields[which][key] = min(worst, reached)
        bandwidth += run.instance.platform.bandwidth
        _add_rates(rates, keys, run, begin_s - origin_s, end_s - origin_s)
    return {
        "policy": policy,
        "present": present,
        "jobs": _job_rows(yields),
        "left_out": sorted(
            {_key(each.job) for each in present_runs} - yields["present"].keys()
        ),
        "picture": _picture(rates, bandwidth, begin_s, end_s),
    }


def _operations_by_storage(
    folder: Path,
    begin_s: float,
    end_s: float,
    under_way: Sequence[RunWithOperations],
) -> list[_Operations]:
    """Return what jobs did on each storage; jobs that moved nothing are left out."""
    archive = ArchiveReader(folder)
    found = archive.operations_at_most(_MOST_OPERATIONS, begin_s, end_s)
    _add_under_way(found, under_way)
    storages: defaultdict[str, _Operations] = defaultdict(dict)
    for run, operations in found.items():
        inside = [_inside(each, begin_s, end_s) for each in operations]
        if any(each.moved_bytes > 0.0 for each in inside):
            shortened = replace(run, joined_s=max(run.joined_s, begin_s))
            storages[run.storage][shortened] = inside
    if not storages:
        raise InputError("no job has moved anything in this time")
    return list(storages.values())


def _add_under_way(
    operations: _Operations, under_way: Sequence[RunWithOperations]
) -> None:
    """Add the present operations of jobs to what the archive knows of these jobs."""
    running = {run.job_key: run for run in operations if run.left_s is None}
    for place, present in enumerate(under_way):
        key = _key(present.job)
        # A job whose first operation goes on is not in the archive.
        run = running.get(key) or _unarchived(key, present.job, -place - 1)
        now = [_completed(each) for each in present.operations]
        operations.setdefault(run, []).extend(now)


def _key(job: PastJob) -> str:
    return f"{job.user}:{job.job_name}"


def _unarchived(job_key: str, job: PastJob, number: int) -> ArchivedRun:
    """Return a run that is not in the archive; its number is negative."""
    return ArchivedRun(
        file="",
        number=number,
        job_key=job_key,
        user=job.user,
        storage=job.storage,
        nodes=job.nodes,
        joined_s=job.joined_s,
        left_s=None,
        lost_s=job.lost_s,
        moved_bytes=job.moved_bytes,
        cap=inf if job.cap is None else job.cap,
        policy=job.policy,
    )


def _completed(reported: ReportedOperation) -> CompletedOperation:
    """Return an operation that ends now, without its grants: nobody reads them."""
    return CompletedOperation(
        *(reported.begin_s, reported.end_s, reported.moved_bytes),
        *(reported.held_up_s, reported.lost_s),
        inf if reported.capacity is None else reported.capacity,
        reported.policy,
        (),
    )


def _inside(
    operation: CompletedOperation, begin_s: float, end_s: float
) -> CompletedOperation:
    """Return the part of an operation that is between two instants."""
    first_s, last_s = max(operation.begin_s, begin_s), min(operation.end_s, end_s)
    length_s = operation.end_s - operation.begin_s
    part = max(last_s - first_s, 0.0) / length_s if length_s > 0.0 else 1.0
    return operation._replace(
        begin_s=first_s,
        end_s=max(last_s, first_s),
        moved_bytes=operation.moved_bytes * part,
        held_up_s=operation.held_up_s * part,
        lost_s=operation.lost_s * part,
    )


def _simulated(
    operations: _Operations, policy: str, *, compiled: bool
) -> tuple[Run, float]:
    """Return a simulation of the jobs of one storage, and the instant of its time 0."""
    from penstock.advice.importing.instances import (  # noqa: PLC0415 - needs NumPy
        Assumptions,
        assumed_platform,
        build,
        named,
    )
    from penstock.advice.logs.history import logged_run  # noqa: PLC0415
    from penstock.policies import get_policy  # noqa: PLC0415
    from penstock.sim import simulate  # noqa: PLC0415

    jobs = named(
        logged_run(run.name, "", run, done) for run, done in operations.items()
    )
    platform, _ = assumed_platform(jobs, Assumptions())
    instance, _ = build(jobs, platform, Assumptions())
    run = simulate(
        instance, get_policy(policy), steady=False, record=True, compiled=compiled
    )
    return run, min(each.joined_s for each in operations)


def _add_rates(
    rates: dict[str, list[float]],
    keys: Sequence[str],
    run: Run,
    begin_s: float,
    end_s: float,
) -> None:
    """Add the mean rates of jobs in intervals of equal lengths, in simulated time."""
    import numpy as np  # noqa: PLC0415 - an extra

    from penstock.analysis.shares import shares_between  # noqa: PLC0415

    shares = shares_between(run, np.linspace(begin_s, end_s, POINTS + 1))
    means = shares * run.instance.platform.bandwidth
    for key, mean in zip(keys, means.tolist(), strict=True):
        known = rates.get(key, [0.0] * POINTS)
        rates[key] = list(map(sum, zip(known, mean, strict=True)))


def _job_rows(yields: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    present = yields["present"]
    order = sorted(present, key=lambda key: (round(present[key], 6), key))
    return [
        {
            "job": key,
            "present": present[key],
            "policy": yields["policy"][key],
            "actual": yields["actual"][key],
        }
        for key in order
    ]


def _picture(
    rates: dict[str, list[float]], bandwidth: float, begin_s: float, end_s: float
) -> dict[str, Any]:
    totals = Counter({key: sum(values) for key, values in rates.items()})
    shown = [key for key, _ in totals.most_common(MOST_SERIES)]
    rest = [key for key in rates if key not in shown]
    length_s = (end_s - begin_s) / POINTS
    return {
        "times": [begin_s + place * length_s for place in range(POINTS)],
        "bandwidth": [bandwidth] * POINTS,
        "series": [
            {"job": key, "rates": [round(rate) for rate in rates[key]]} for key in shown
        ],
        "others": [round(sum(rates[key][n] for key in rest)) for n in range(POINTS)],
    }


if __name__ == "__main__":
    sys.exit(main())
