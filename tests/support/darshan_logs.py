# SPDX-License-Identifier: MIT
"""Darshan logs for tests: real ones, and logs that Darshan's own library writes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = [
    "LOGS",
    "Segment",
    "dxt_record",
    "need_darshan",
    "posix_record",
    "write_log",
]

#: Real logs of the examples: counters only, heatmap, DXT.
LOGS: Final = Path(__file__).parents[2] / "examples" / "logs"

#: Declarations of ``darshan-logutils.h`` that PyDarshan leaves out.
_DECLARATIONS: Final = """
struct darshan_job { int64_t uid, start_time_sec, start_time_nsec, end_time_sec,
    end_time_nsec, nprocs, jobid; char metadata[1024]; };
void *darshan_log_create(const char *name, int compression, int partial);
int darshan_log_put_job(void *log, struct darshan_job *job);
int darshan_log_put_exe(void *log, char *program);
int darshan_log_put_mounts(void *log, void *mounts, int count);
int darshan_log_put_namehash(void *log, void *names);
int darshan_log_put_mod(void *log, int module, void *data, int size, int version);
void darshan_log_close(void *log);
"""
_ZLIB: Final = 0
#: Module -> number and version.
_MODULES: Final = {"POSIX": (1, 4), "DXT_POSIX": (10, 1)}
_POSIX_COUNTERS: Final = 69
_POSIX_TIMES: Final = 17

#: Offset and length (bytes), begin and end (s) of an access.
Segment = tuple[int, int, float, float]


def need_darshan() -> None:
    """Skip the test if the package darshan is missing, or its C library is."""
    try:
        pytest.importorskip("darshan", reason="the extra `import` is not installed")
    except RuntimeError:
        pytest.skip("the package darshan has no C library for this Python")


def write_log(
    path: Path,
    *,
    modules: Iterable[tuple[str, bytes]] = (),
    run_s: int = 100,
    processes: int = 1,
    start_s: int = 1_700_000_000,
    job_id: int = 4711,
    versions: Mapping[str, int] | None = None,
) -> Path:
    """Write a log with the given records of modules, as (name, bytes).

    `versions` replaces the versions of the modules that it names.
    """
    ffi, library = _library()
    log = library.darshan_log_create(str(path).encode(), _ZLIB, 0)
    assert log != ffi.NULL
    job = ffi.new("struct darshan_job *")
    job.start_time_sec, job.end_time_sec = start_s, start_s + run_s
    job.nprocs, job.jobid, job.uid = processes, job_id, 1000
    assert library.darshan_log_put_job(log, job) == 0
    assert library.darshan_log_put_exe(log, ffi.new("char[]", b"./made")) == 0
    library.darshan_log_put_mounts(log, ffi.NULL, 0)
    library.darshan_log_put_namehash(log, ffi.NULL)
    for name, data in modules:
        number, version = _MODULES[name]
        version = (versions or {}).get(name, version)
        buffer = ffi.from_buffer(data)
        status = library.darshan_log_put_mod(log, number, buffer, len(data), version)
        assert status >= 0
    library.darshan_log_close(log)
    return path


def posix_record(
    file_id: int,
    *,
    rank: int = 0,
    read: tuple[int, float, float, float] = (0, 0.0, 0.0, 0.0),
    written: tuple[int, float, float, float] = (0, 0.0, 0.0, 0.0),
) -> tuple[str, bytes]:
    """Return counters: for reads and writes bytes, begin, end and time spent (s)."""
    backend = import_module("darshan.backend.cffi_backend")
    names, times = backend.counter_names("POSIX"), backend.fcounter_names("POSIX")
    counters, seconds = [0] * _POSIX_COUNTERS, [0.0] * _POSIX_TIMES
    for (volume, begin, end, spent), way, done in (
        (read, "READ", "READ"),
        (written, "WRITE", "WRITTEN"),
    ):
        counters[names.index(f"POSIX_BYTES_{done}")] = volume
        seconds[times.index(f"POSIX_F_{way}_START_TIMESTAMP")] = begin
        seconds[times.index(f"POSIX_F_{way}_END_TIMESTAMP")] = end
        seconds[times.index(f"POSIX_F_{way}_TIME")] = spent
    head = struct.pack("<Qq", file_id, rank)
    body = struct.pack(f"<{_POSIX_COUNTERS}q{_POSIX_TIMES}d", *counters, *seconds)
    return "POSIX", head + body


def dxt_record(
    file_id: int,
    *,
    rank: int = 0,
    host: str = "n1",
    reads: Sequence[Segment] = (),
    writes: Sequence[Segment] = (),
) -> tuple[str, bytes]:
    """Return the traced accesses of a process to a file."""
    head = struct.pack(
        "<Qqq64sqq", file_id, rank, 0, host.encode(), len(writes), len(reads)
    )
    rows = b"".join(struct.pack("<qqdd", *row) for row in (*writes, *reads))
    return "DXT_POSIX", head + rows


def _library() -> tuple[Any, Any]:
    """Return cffi and the library that the package darshan has loaded."""
    import_module("darshan.backend.cffi_backend")
    cffi: Any = import_module("cffi")
    lines = Path("/proc/self/maps").read_text().splitlines()
    path = next(line.split()[-1] for line in lines if "libdarshan-util" in line)
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    return ffi, ffi.dlopen(path)
