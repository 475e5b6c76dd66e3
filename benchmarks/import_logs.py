# SPDX-License-Identifier: MIT
"""How exact, how fast and how large ``penstock import`` is on Darshan logs.

    python benchmarks/import_logs.py yields [LOG ...]
    python benchmarks/import_logs.py rate [COPIES]
    python benchmarks/import_logs.py resume [COPIES]
    python benchmarks/import_logs.py memory [MEGABYTES]

``yields``: each log with DXT is imported three times, from DXT, from a heatmap and from
counters alone. The heatmap is made of the DXT records as Darshan makes it: bins of
0.1 s, doubled until there are at most 200. Then two jobs of this log share a storage
whose bandwidth is the rate of the job; the second one starts at eight different times.
The table shows how far the yields under fair-share are from those with DXT (mean and
greatest difference, in points).

``rate``: copies of the logs of examples/logs are imported. CPU time counts: that of
reading, which workers do, and that of the process beside them.

``resume``: a folder of copies (10,000) is imported by ``penstock import``. A second
import is killed (SIGKILL) after half of the logs; the same command then continues it.
Both instances must be equal to the byte.

``memory``: a log with DXT records of this compressed size is written and imported; its
times are random, so that it does not compress well.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from msgspec.structs import replace

from penstock.advice.importing.importer import ImportOptions, import_logs
from penstock.advice.importing.instances import Assumptions, build
from penstock.advice.logs import darshan
from penstock.advice.logs.bursts import DEFAULT_GAP_S
from penstock.advice.logs.darshan import darshan_job
from penstock.advice.logs.record import Detail, LoggedJob
from penstock.model import Platform
from penstock.sim import simulate
from penstock.workloads.darshan_log import DarshanLog, HeatmapRecord

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.darshan_logs import LOGS, write_log  # noqa: E402 - the path comes first

_MOST_BINS = 200
_FIRST_BIN_S = 0.1
_STARTS = 8
_DETAILS: tuple[tuple[Detail, ...], ...] = (("dxt",), ("heatmap",), ("counters",))


class BinnedLog(DarshanLog):
    """A log whose heatmap is made of its DXT records."""

    def heatmaps(self) -> Iterator[HeatmapRecord]:
        """Yield one heatmap of all POSIX accesses."""
        bin_s = _FIRST_BIN_S
        while self.job.run_s > _MOST_BINS * bin_s:
            bin_s *= 2.0
        bins = np.zeros(_MOST_BINS + 1)
        for record in self.segments():
            for segments in (record.reads, record.writes):
                for _, length, begin, end in segments.tolist():
                    _spread(bins, begin / bin_s, end / bin_s, length)
        moved = np.rint(bins).astype(np.int64)
        yield HeatmapRecord("POSIX", 0, bin_s, moved, np.zeros_like(moved))


def _spread(bins: np.ndarray, begin: float, end: float, length: float) -> None:
    """Add the bytes of an access to the bins that it overlaps, in proportion."""
    first, last = int(begin), min(int(end), len(bins) - 1)
    if last <= first or end <= begin:
        bins[min(first, len(bins) - 1)] += length
        return
    for place in range(first, last + 1):
        inside = min(end, place + 1.0) - max(begin, float(place))
        bins[place] += length * inside / (end - begin)


def _yields(job: LoggedJob, bandwidth: float, start_s: float) -> np.ndarray:
    """Return the yields of the job and of a copy that starts later."""
    given = Assumptions(bandwidth=bandwidth)
    pair = [job, replace(job, name="copy", start_s=job.start_s + start_s)]
    instance, _ = build(pair, Platform(bandwidth, bandwidth), given)
    return simulate(instance, "fair-share", steady=False).yields


def measure_yields(paths: list[Path]) -> None:
    """Print how far yields are off with less detail."""
    print("| log | detail | operations | I/O (s) | mean error | greatest error |")
    print("|---|---|---|---|---|---|")
    for path in paths:
        with patch.object(darshan, "DarshanLog", BinnedLog):
            jobs = [darshan_job(path, DEFAULT_GAP_S, detail) for detail in _DETAILS]
        exact = jobs[0]
        bandwidth = exact.volume_bytes / exact.io_s
        starts = [exact.run_s * k / _STARTS for k in range(_STARTS)]
        truth = np.array([_yields(exact, bandwidth, start) for start in starts])
        for job in jobs:
            found = np.array([_yields(job, bandwidth, start) for start in starts])
            error = 100.0 * np.abs(found - truth)
            print(
                f"| {path.stem} | {job.detail} | {len(job.bursts)} | {job.io_s:.3g} | "
                f"{error.mean():.2f} | {error.max():.2f} |"
            )


def measure_rate(copies: int) -> None:
    """Print how many logs one core imports per second."""
    logs = sorted(LOGS.glob("*.darshan"))
    darshan_job(logs[0], DEFAULT_GAP_S)  # Import the package darshan.
    began = time.process_time()
    for number in range(copies):
        darshan_job(logs[number % len(logs)], DEFAULT_GAP_S)
    in_worker = time.process_time() - began
    with tempfile.TemporaryDirectory() as folder:
        _copy_logs(Path(folder), copies)
        began = time.process_time()
        count = len(import_logs([folder], ImportOptions(workers=1)).jobs)
        beside = time.process_time() - began
    print(f"{count} logs, CPU time {in_worker:.2f} s in workers, {beside:.2f} s beside")
    print(f"{count / (in_worker + beside):.0f} logs per second and core")


def measure_resume(copies: int) -> None:
    """Print how long a large import takes, and how much a killed one has to repeat."""
    with tempfile.TemporaryDirectory() as root:
        logs = Path(root) / "logs"
        _copy_logs(logs, copies)
        whole, continued = Path(root) / "whole.json", Path(root) / "continued.json"
        _timed("whole import", logs, whole, copies)
        journal = Path(f"{continued}.partial")
        process = subprocess.Popen(_command(logs, continued), stdout=subprocess.DEVNULL)
        while _lines(journal) < copies / 2:
            if process.poll() is not None:
                sys.exit("the import ended before it was killed")
            time.sleep(0.05)
        process.kill()
        process.wait()
        known = _lines(journal)
        print(f"killed after {known} of {copies} logs")
        _timed("continued import", logs, continued, copies - known)
        print(f"same instance: {whole.read_bytes() == continued.read_bytes()}")


def _copy_logs(folder: Path, copies: int) -> None:
    """Copy the logs of examples/logs until there are `copies` files."""
    folder.mkdir(exist_ok=True)
    logs = sorted(LOGS.glob("*.darshan"))
    for number in range(copies):
        shutil.copy(logs[number % len(logs)], folder / f"{number}.darshan")


def _command(logs: Path, output: Path) -> list[str]:
    options = ["--align", "--bandwidth", "1TB/s", "-o", str(output)]
    return [sys.executable, "-m", "penstock", "import", str(logs), *options]


def _lines(path: Path) -> int:
    """Return the number of logs in a journal, whose first line is a header."""
    return max(path.read_bytes().count(b"\n") - 1, 0) if path.exists() else 0


def _timed(what: str, logs: Path, output: Path, count: int) -> None:
    began = time.perf_counter()
    subprocess.run(_command(logs, output), check=True, stdout=subprocess.DEVNULL)
    print(f"{what}: {count} logs read in {time.perf_counter() - began:.1f} s")


def measure_memory(megabytes: int) -> None:
    """Print the memory that reading a large log needs, as a worker does it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.darshan"
        write_log(path, modules=_large_records(megabytes), run_s=86400, processes=512)
        size = path.stat().st_size
        began = time.perf_counter()
        job = darshan_job(path, DEFAULT_GAP_S)
        wall = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"log {size / 1e6:.0f} MB, {len(job.bursts)} operations, {wall:.1f} s")
    print(f"greatest memory of writing and reading {most / 1e6:.0f} MB")


def _large_records(megabytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield DXT records of 512 processes, about 20 compressed bytes per access."""
    generator = np.random.default_rng(1)
    accesses = megabytes * 50_000 // 512
    kind = np.dtype([("offset", "<i8"), ("length", "<i8"), ("t", "<f8"), ("u", "<f8")])
    for rank in range(512):
        rows = np.zeros(accesses, kind)
        rows["t"] = np.sort(generator.uniform(0.0, 86000.0, accesses))
        rows["u"] = rows["t"] + generator.uniform(0.0, 0.01, accesses)
        rows["length"] = generator.integers(1, 1 << 20, accesses)
        rows["offset"] = np.cumsum(rows["length"])
        head = np.zeros(1, "<u8,<i8,<i8,S64,<i8,<i8")
        head[0] = (7, rank, 0, f"n{rank // 64}".encode(), accesses, 0)
        yield "DXT_POSIX", head.tobytes() + rows.tobytes()


def main(words: list[str]) -> None:
    """Run the measurement that the first word names."""
    what, *rest = words or ["yields"]
    if what == "yields":
        known = [*(ROOT / "tests" / "data").glob("*dxt*"), *LOGS.glob("*dxt*")]
        measure_yields([Path(word) for word in rest] or known)
    elif what == "rate":
        measure_rate(int(rest[0]) if rest else 1000)
    elif what == "resume":
        measure_resume(int(rest[0]) if rest else 10_000)
    elif what == "memory":
        measure_memory(int(rest[0]) if rest else 1000)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
