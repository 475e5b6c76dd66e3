# SPDX-License-Identifier: MIT
"""What ``penstock run`` with nothing configured costs a program that runs alone.

Every program of `harmless_programs` runs plainly and under ``penstock run``, in turn,
in one folder: first with its input files in the page cache, then without. The value is
the median of the ratios of both times, with an interval that contains the true median
with a probability of 95 % (the lowest and the highest ratio if there are too few). The
ratio of the processor times is less disturbed by other programs of the machine.

The start of ``penstock run`` is not part of the ratio: ``stopwatch.c`` takes the time
from the start of the program itself to its end. The start is measured separately.
"""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from penstock.bench import BenchSettings, Measurement
from penstock.bench.cost.harmless_programs import (
    PROGRAMS,
    BenchProgram,
    forget_cached,
    make_inputs,
    missing_needs,
)
from penstock.bench.cost.paired_runs import PairedRuns
from penstock.bench.testbed import high_priority, temporary_folder
from penstock.live.node.file_system import file_system_type
from penstock.native.files import shim_path

__all__ = ["Ratios", "measure", "median_interval", "table"]

#: The goal: a program takes at most this much longer.
_SLOWER: Final = 1.02
_CONFIDENCE: Final = 0.95
#: Folder on the disk of the machine; programs expect files there to be kept.
_DISK: Final = Path("/var/tmp")  # noqa: S108 - a folder with a random name is created
_MEMORY: Final = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Ratios:
    """Times of a program under ``penstock run`` divided by plain times."""

    program: str
    place: str
    """File system, folder, and whether the input files were in the page cache."""
    ratios: Sequence[float]
    plain_s: Sequence[float]
    """The plain times."""
    processor: float = 1.0
    """Processor time under ``penstock run`` divided by the plain one, medians."""

    @property
    def median(self) -> float:
        """Median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the median."""
        return median_interval(self.ratios)

    @property
    def noise(self) -> float:
        """Median of the relative differences of two plain runs that follow."""
        pairs = itertools.pairwise(self.plain_s)
        return statistics.median([abs(b / a - 1.0) for a, b in pairs] or [0.0])

    @property
    def is_slower(self) -> bool:
        """True if the program is slower than the goal beyond the noise."""
        return self.interval[0] > _SLOWER


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return two of the values that enclose the true median at 95 % confidence.

    The number of values below the median is binomial with p = 1/2. If there are too
    few values for 95 %, the result is the lowest and the highest.
    """
    ordered, count = sorted(values), len(values)
    outside, rank = 2.0 / 2**count, 0
    while rank < (count - 1) // 2:
        outside += 2.0 * math.comb(count, rank + 1) / 2**count
        if outside > 1.0 - _CONFIDENCE:
            break
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the cost of the start, the ratios of all programs, and their summary."""
    missing = {program.name: missing_needs(program) for program in PROGRAMS}
    programs = [program for program in PROGRAMS if not missing[program.name]]
    with ExitStack() as stack:
        # Other programs of this machine would disturb the ratios.
        stack.enter_context(high_priority())
        root = stack.enter_context(temporary_folder(settings.folder))
        runs = stack.enter_context(PairedRuns(root, settings.rounds))
        yield from _measure_start(runs)
        results: list[Ratios] = []
        for place in _places(settings):
            with _filled_folder(place.folder) as work:
                for ratios in _compare(runs, programs, work, place):
                    results.append(ratios)
                    yield _measurement(ratios)
    yield from _summary(results)
    for name, needs in missing.items():
        if needs:
            yield Measurement(f"skipped: {name} (needs {', '.join(needs)})", 0.0, "")
    if settings.output is not None:
        (settings.output / "harmless.md").write_text(table(results))


# --- Where ------------------------------------------------------------------------


class _Place(NamedTuple):
    folder: Path
    kind: str
    """Type of its file system."""

    def __str__(self) -> str:
        return f"{self.kind} {self.folder}"


def _places(settings: BenchSettings) -> list[_Place]:
    """Return the folders to measure in; one that is named twice only once."""
    named = [settings.folder, _DISK, settings.storage]
    folders = dict.fromkeys(folder.resolve() for folder in named if folder is not None)
    return [_Place(folder, file_system_type(str(folder))) for folder in folders]


@contextmanager
def _filled_folder(folder: Path) -> Iterator[Path]:
    """Create a folder with the input files of all programs during the block."""
    with temporary_folder(folder) as work:
        make_inputs(work)
        yield work


# --- Runs -------------------------------------------------------------------------


def _compare(
    runs: PairedRuns, programs: Sequence[BenchProgram], work: Path, place: _Place
) -> Iterator[Ratios]:
    """Yield the ratios of all programs in a folder, cached and cold."""
    for is_cold in (False, True)[: 1 if place.kind in _MEMORY else 2]:
        state = f"{place} {'cold' if is_cold else 'cached'}"
        prepare = partial(_prepare, work, is_cold=is_cold)
        for program in programs:
            prepare()
            if not is_cold:
                runs.run(program.words, work, controlled=False)
            pairs = list(runs.pairs(program.words, work, prepare))
            ratios = [run.own_s / plain.own_s for plain, run in pairs]
            processor = statistics.median(run.processor_s for _, run in pairs) / (
                statistics.median(plain.processor_s for plain, _ in pairs) or inf
            )
            plain_s = [plain.own_s for plain, _ in pairs]
            yield Ratios(program.name, state, ratios, plain_s, processor)
    _prepare(work)


def _prepare(work: Path, *, is_cold: bool = False) -> None:
    """Empty the folder ``out``, and the page cache of the inputs if necessary."""
    shutil.rmtree(work / "out", ignore_errors=True)
    (work / "out").mkdir(exist_ok=True)
    if is_cold:
        forget_cached(work)


# --- Results ----------------------------------------------------------------------


def _measure_start(runs: PairedRuns) -> Iterator[Measurement]:
    """Yield what ``penstock run`` adds before a program, and the loader inside it."""
    shim_path()  # Without the preload library, fail before anything starts.
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        first_s = runs.start()
        pairs = list(runs.pairs(["true"], work))
    start_s = [
        (run.total_s - run.own_s) - (plain.total_s - plain.own_s)
        for plain, run in pairs
    ]
    loaded_s = [run.own_s - plain.own_s for plain, run in pairs]
    yield Measurement("first start, with a private daemon", first_s * 1e3, "ms")
    yield Measurement("start of penstock run", statistics.median(start_s) * 1e3, "ms")
    yield Measurement(
        "library, in every process", statistics.median(loaded_s) * 1e3, "ms"
    )


def _measurement(ratios: Ratios) -> Measurement:
    low, high = ratios.interval
    parts = {
        "low": low,
        "high": high,
        "processor": ratios.processor,
        "plain_ms": statistics.median(ratios.plain_s) * 1e3,
    }
    return Measurement(
        f"{ratios.place}: {ratios.program}", ratios.median, "", parts=parts
    )


def _summary(results: Sequence[Ratios]) -> Iterator[Measurement]:
    """Yield, for each place, the median of all programs and how many are slower."""
    for place in dict.fromkeys(ratios.place for ratios in results):
        here = [ratios for ratios in results if ratios.place == place]
        middle = statistics.median(ratios.median for ratios in here)
        yield Measurement(
            f"{place}: median of {len(here)} programs", middle, "", most=_SLOWER
        )
        processor = statistics.median(ratios.processor for ratios in here)
        yield Measurement(f"{place}: median of their processor times", processor, "")
        noise = statistics.median(ratios.noise for ratios in here)
        yield Measurement(f"{place}: difference of two plain runs", 100 * noise, "%")
        slower = [ratios.program for ratios in here if ratios.is_slower]
        names = f": {', '.join(slower)}" if slower else ""
        yield Measurement(
            f"{place}: slower by more than 2 %{names}", len(slower), "", most=0.0
        )


def table(results: Sequence[Ratios]) -> str:
    """Return a table in Markdown: a row for each program, a column for each place."""
    places = list(dict.fromkeys(ratios.place for ratios in results))
    cells = {(r.program, r.place): _cell(r) for r in results}
    lines = [f"| program | {' | '.join(places)} |", "|---" * (len(places) + 1) + "|"]
    for program in dict.fromkeys(ratios.program for ratios in results):
        row = [cells.get((program, place), "") for place in places]
        lines.append(f"| {program} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _cell(ratios: Ratios) -> str:
    low, high = ratios.interval
    text = f"{ratios.median:.3f} ({low:.3f} to {high:.3f})"
    return f"**{text}**" if ratios.is_slower else text
