# SPDX-License-Identifier: MIT
"""Darshan logs, read record by record through Darshan's own C library.

The package darshan (extra ``import``) brings the library ``libdarshan-util`` and its
declarations for cffi. Its class ``DarshanReport`` builds tables of a whole log, which
takes 50 times as long as the library and needs memory for all records. `DarshanLog`
calls the library directly and hands out one record at a time.

The library reports errors on standard error. While a log is open, standard error is
captured; the last line becomes the message of an `InputError`. A damaged log can also
crash the library: `penstock import` therefore reads logs in processes of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError

__all__ = [
    "CounterRecord",
    "DarshanJob",
    "DarshanLog",
    "DxtRecord",
    "HeatmapRecord",
    "check_reader",
]

#: What a Darshan log has at byte 8.
_MAGIC: Final = 6567223
#: Layout of a DXT segment in memory, as in ``struct segment_info``.
_SEGMENT: Final = np.dtype(
    [("offset", "<i8"), ("length", "<i8"), ("start_time", "<f8"), ("end_time", "<f8")]
)
#: Module -> type of its records, and the prefix of the names of its counters.
_COUNTERS: Final = {
    "POSIX": ("struct darshan_posix_file *", "POSIX"),
    "MPI-IO": ("struct darshan_mpiio_file *", "MPIIO"),
    "STDIO": ("struct darshan_stdio_file *", "STDIO"),
}
_ERRORS_BYTES: Final = 4096
_PROGRAM_BYTES: Final = 4097


@dataclass(frozen=True, slots=True)
class DarshanJob:
    """What a log says about the job as a whole."""

    start_s: float
    end_s: float
    """Begin and end, in seconds since 1970."""
    run_s: float
    """Length; logs before version 3.4 round it up to whole seconds."""
    processes: int
    job_id: int
    user_id: int
    program: str
    """Path and arguments of the program."""


class CounterRecord(NamedTuple):
    """The counters of one file, of one process or (rank -1) of all processes."""

    file_id: int
    rank: int
    read_bytes: int
    written_bytes: int
    reading_s: tuple[float, float]
    """Begin of the first and end of the last read, in seconds since the job began."""
    writing_s: tuple[float, float]
    read_s: float
    """Time in reads, summed over the processes (s)."""
    written_s: float
    slowest_s: float
    """Time of the slowest process of a shared file (s); 0 for other files."""


class DxtRecord(NamedTuple):
    """The reads and writes of one process in one file."""

    file_id: int
    rank: int
    hostname: str
    reads: NDArray[Any]
    writes: NDArray[Any]
    """Columns offset, length (bytes), start_time and end_time (s)."""


class HeatmapRecord(NamedTuple):
    """Bytes of one process per interval of time, in one module."""

    module: str
    """POSIX, MPIIO or STDIO."""
    rank: int
    bin_s: float
    read_bytes: NDArray[np.int64]
    written_bytes: NDArray[np.int64]


class DarshanLog:
    """An open log; a context manager.

    Raises `InputError` if the file is not a complete Darshan log of a known version,
    or if the package darshan is missing.
    """

    def __init__(self, path: str | Path) -> None:
        with Path(path).open("rb") as stream, ExitStack() as stack:
            version = _checked_version(stream.read(16))
            self._backend = _backend()
            self._ffi, self._library = self._backend.ffi, self._backend.libdutil
            self._errors = stack.enter_context(_captured_errors())
            # RATIONALE: a damaged log can lead the library to delete the file that it
            # has opened. This name of the file cannot be deleted.
            name = f"/proc/self/fd/{stream.fileno()}".encode()
            self._handle = self._library.darshan_log_open(name)
            if self._handle == self._ffi.NULL:
                raise self._error(f"a Darshan log of version {version}")
            stack.callback(self._library.darshan_log_close, self._handle)
            self.job = self._read_job()
            self._modules = self._read_modules()
            # Everything succeeded: keep the log open.
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    @property
    def modules(self) -> frozenset[str]:
        """Names of the modules that have records: POSIX, DXT_POSIX, HEATMAP ..."""
        return frozenset(self._modules)

    def is_partial(self, module: str) -> bool:
        """Return True if Darshan ran out of memory for the records of a module."""
        return module in self._modules and self._modules[module][1]

    def counters(self, module: str) -> Iterator[CounterRecord]:
        """Yield the counters of POSIX, MPI-IO or STDIO; none if it is not there."""
        kind, prefix = _COUNTERS[module]
        names = self._backend.counter_names(module)
        times = self._backend.fcounter_names(module)
        columns = _Columns(prefix, names, times)
        for record in self._records(module, kind):
            yield columns.record(
                record,
                np.frombuffer(self._ffi.buffer(record.counters), np.int64),
                np.frombuffer(self._ffi.buffer(record.fcounters), np.float64),
            )

    def segments(self, module: str = "DXT_POSIX") -> Iterator[DxtRecord]:
        """Yield the traced reads and writes, file by file and process by process.

        The arrays are valid until the next record is asked for.
        """
        head = self._ffi.sizeof("struct dxt_file_record")
        for record in self._records(module, "struct dxt_file_record *"):
            count = record.write_count + record.read_count
            first = self._ffi.cast("char *", record) + head
            data = self._ffi.buffer(first, count * _SEGMENT.itemsize)
            segments = np.frombuffer(data, _SEGMENT)
            yield DxtRecord(
                record.base_rec.id,
                record.base_rec.rank,
                _text(self._ffi.string(record.hostname)),
                reads=segments[record.write_count :],
                writes=segments[: record.write_count],
            )

    def heatmaps(self) -> Iterator[HeatmapRecord]:
        """Yield the heatmap of every process and module."""
        names = self.names() if "HEATMAP" in self._modules else {}
        for record in self._records("HEATMAP", "struct darshan_heatmap_record *"):
            size = 8 * record.nbins
            reads, writes = (
                np.frombuffer(bytes(self._ffi.buffer(bins, size)), np.int64)
                for bins in (record.read_bins, record.write_bins)
            )
            name = names.get(record.base_rec.id, "")
            yield HeatmapRecord(
                name.removeprefix("heatmap:"),
                record.base_rec.rank,
                record.bin_width_seconds,
                read_bytes=reads,
                written_bytes=writes,
            )

    def names(self) -> dict[int, str]:
        """Return the names of all files of the log, by their number."""
        names = self._ffi.new("struct darshan_name_record **")
        count = self._ffi.new("int *")
        self._library.darshan_log_get_name_records(self._handle, names, count)
        table = {}
        for index in range(count[0]):
            entry = names[0][index]
            table[int(entry.id)] = _text(self._ffi.string(entry.name))
            self._library.darshan_free(entry.name)
        self._library.darshan_free(names[0])
        return table

    # --- Calls of the library ---------------------------------------------------------

    def _read_job(self) -> DarshanJob:
        job = self._ffi.new("struct darshan_job *")
        if self._library.darshan_log_get_job(self._handle, job) < 0:
            raise self._error("the log is damaged")
        run = self._ffi.new("double *")
        self._library.darshan_log_get_job_runtime(self._handle, job[0], run)
        program = self._ffi.new(f"char[{_PROGRAM_BYTES}]")
        self._library.darshan_log_get_exe(self._handle, program)
        return DarshanJob(
            start_s=job.start_time_sec + 1e-9 * job.start_time_nsec,
            end_s=job.end_time_sec + 1e-9 * job.end_time_nsec,
            run_s=float(run[0]),
            processes=int(job.nprocs),
            job_id=int(job.jobid),
            user_id=int(job.uid),
            program=_text(self._ffi.string(program)),
        )

    def _read_modules(self) -> dict[str, tuple[int, bool]]:
        """Return number of the module and whether it is partial, by name."""
        modules = self._ffi.new("struct darshan_mod_info **")
        count = self._ffi.new("int *")
        self._library.darshan_log_get_modules(self._handle, modules, count)
        table = {}
        for index in range(count[0]):
            module = modules[0][index]
            if module.name == self._ffi.NULL:
                raise self._error("the log is damaged")
            name = _text(self._ffi.string(module.name))
            table[name] = (int(module.idx), bool(module.partial_flag))
        self._library.darshan_free(modules[0])
        return table

    def _records(self, module: str, kind: str) -> Iterator[Any]:
        """Yield the records of a module; each is freed when the next is asked for."""
        if module not in self._modules:
            return
        number, _ = self._modules[module]
        while True:
            buffer = self._ffi.new("void **")
            status = self._library.darshan_log_get_record(self._handle, number, buffer)
            if status < 0:
                raise self._error(f"the records of {module} cannot be read")
            if status == 0:
                return
            try:
                yield self._ffi.cast(kind, buffer[0])
            finally:
                self._library.darshan_free(buffer[0])

    def _error(self, what: str) -> InputError:
        """Return an error with the last line that the library has printed."""
        printed = _text(os.pread(self._errors, _ERRORS_BYTES, 0)).splitlines()
        reason = printed[-1].removeprefix("Error: ").strip() if printed else "no reason"
        return InputError(
            f"{what}: {reason.rstrip('.')}",
            remedy="the log is damaged, incomplete, or newer than the package darshan "
            f"{self._backend.get_lib_version()}",
        )


@contextmanager
def _captured_errors() -> Iterator[int]:
    """Send standard error to a file in memory; yield its descriptor."""
    output = os.memfd_create("darshan-errors")
    kept = os.dup(2)
    os.dup2(output, 2)
    try:
        yield output
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(output)


class _Columns:
    """Where the counters of a module are in its records."""

    def __init__(self, prefix: str, counters: list[str], times: list[str]) -> None:
        def place(names: list[str], name: str) -> int:
            return names.index(f"{prefix}_{name}")

        self._bytes = [place(counters, f"BYTES_{n}") for n in ("READ", "WRITTEN")]
        self._spans = [
            [place(times, f"F_{way}_{edge}_TIMESTAMP") for edge in ("START", "END")]
            for way in ("READ", "WRITE")
        ]
        self._times = [place(times, f"F_{way}_TIME") for way in ("READ", "WRITE")]
        self._slowest = place(times, "F_SLOWEST_RANK_TIME")

    def record(
        self, record: Any, counters: NDArray[np.int64], times: NDArray[np.float64]
    ) -> CounterRecord:
        read_bytes, written_bytes = (max(int(counters[n]), 0) for n in self._bytes)
        reading, writing = (
            (float(times[begin]), float(times[end])) for begin, end in self._spans
        )
        return CounterRecord(
            int(record.base_rec.id),
            int(record.base_rec.rank),
            read_bytes,
            written_bytes,
            reading,
            writing,
            float(times[self._times[0]]),
            float(times[self._times[1]]),
            float(times[self._slowest]) if record.base_rec.rank < 0 else 0.0,
        )


def _checked_version(head: bytes) -> str:
    """Return the version of a log; raise `InputError` if it is not a Darshan log."""
    if not head:
        raise InputError("the file is empty", remedy="Darshan did not complete the log")
    magic = _MAGIC.to_bytes(8, "little")
    if head[8:16] not in (magic, magic[::-1]):
        raise InputError(
            "this is not a Darshan log",
            remedy="give a complete log, as Darshan wrote it",
        )
    return _text(head[:8].split(b"\0")[0])


def check_reader() -> None:
    """Raise `InputError` if the package that reads Darshan logs is not installed."""
    _backend()


def _backend() -> Any:
    """Import the package darshan; slow, and an extra."""
    try:
        return import_module("darshan.backend.cffi_backend")
    except (ImportError, RuntimeError):
        # RuntimeError: a package of darshan without its C library.
        raise InputError(
            "reading a Darshan log needs the package darshan with its C library",
            remedy="pip install 'penstock[import]'",
        ) from None


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
