# SPDX-License-Identifier: MIT
"""Running a study: piece by piece, on any executor, kept on disk, resumable.

The folder of a study::

    study.json                    what is being computed, and by which code
    pieces/PPPP-IIIIII.SUM.parquet    finished pieces: point, first instance, checksum
    table.parquet                 all rows, sorted, without the times
    times.parquet                 how long each simulation took

Every file is written whole or not at all, so a run may be stopped at any point and
started again with the same command: finished pieces are not computed again, and
`table.parquet` has the same bytes as that of an uninterrupted run. A piece that is
damaged, as its checksum tells, is said and computed again; so are all of them if the
code has changed since, penstock's own or a policy's (see the module `origin`).
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

from penstock import __version__
from penstock.errors import InputError
from penstock.experiments.output.tables import write_parquet
from penstock.experiments.runners.answers import Rows
from penstock.experiments.runners.executors import Executor, Progress
from penstock.experiments.runners.origin import Origin, origin_of
from penstock.experiments.study import Declaration, Piece
from penstock.model import replacing

__all__ = ["run_study"]


def run_study(
    study: Declaration,
    folder: Path,
    executor: Executor,
    progress: Progress = lambda _done, _total, _message: None,
) -> pl.DataFrame:
    """Compute what is missing in `folder`; return the table of all rows."""
    with _claimed(folder):
        campaign = _Campaign(study, folder, progress, origin_of(study))
        campaign.check_origin()
        campaign.find_kept()
        campaign.compute_missing(executor)
        return campaign.gather()


@dataclass(slots=True)
class _Campaign:
    """A study, its folder, and how far it is."""

    study: Declaration
    folder: Path
    progress: Progress
    origin: Origin
    pieces: dict[str, Piece] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    """Files of finished pieces."""

    def __post_init__(self) -> None:
        self.pieces = {piece.key: piece for piece in self.study.pieces()}
        self.costs = {name: piece.cost() for name, piece in self.pieces.items()}

    def check_origin(self) -> None:
        """Remove, and say, results of other code; refuse those of something else."""
        if not self.origin.accepts(self.folder):
            self._show(
                f"{self.folder} holds results of other code (penstock or a policy has "
                "been changed since): computing them again"
            )
            for path in (*self.folder.glob("*.parquet"), *self._kept_files()):
                with suppress(OSError):
                    path.unlink()
        # Last: until then what is left is known for what it is.
        self.origin.sign(self.folder)

    def find_kept(self) -> None:
        """Find the finished pieces; remove, and say, those that are damaged."""
        for path in self._kept_files():
            name, _, checksum = path.stem.partition(".")
            if name in self.pieces and checksum == self._checksum(_content(path)):
                self.kept[name] = path
            else:
                self._show(f"{path} is damaged: computing it again")
                with suppress(OSError):
                    path.unlink()
        self._show()

    def compute_missing(self, executor: Executor) -> None:
        """Compute and keep the other pieces."""
        missing = [p for name, p in self.pieces.items() if name not in self.kept]
        if not missing:
            return
        # Longest first: a long piece begun last would leave all workers but one idle.
        missing.sort(key=lambda piece: -self.costs[piece.key])
        try:
            self._compute(executor, missing)
        except BaseException:
            if self.kept:
                self._show(
                    f"{len(self.kept)} of {len(self.pieces)} pieces are kept in "
                    f"{self.folder}: the same command goes on from there"
                )
            raise

    def _compute(self, executor: Executor, missing: list[Piece]) -> None:
        # Closed at once when we stop: no worker is left when the message appears.
        with (
            _ctrl_c_remembered() as stopped,
            closing(executor.run(missing, self._show)) as results,
        ):
            for piece, rows in results:
                self._keep(piece, rows)
                self._show()
                if stopped:
                    raise KeyboardInterrupt

    def gather(self) -> pl.DataFrame:
        """Join the pieces; keep what is reproducible apart from the times."""
        frames = (pl.read_parquet(self.kept[name]) for name in self.pieces)
        rows = pl.concat(frames, how="diagonal_relaxed")
        key = ("point", "instance", *self.study.CONTENDER)
        rows = rows.sort(key, maintain_order=True)
        times = rows.select(*key, "seconds")
        table = rows.drop("seconds")
        write_parquet(times, self.folder / "times.parquet", self._facts())
        write_parquet(table, self.folder / "table.parquet", self._facts())
        return table

    def _kept_files(self) -> list[Path]:
        return sorted((self.folder / "pieces").glob("*.parquet"))

    def _keep(self, piece: Piece, rows: Rows) -> None:
        frame = pl.DataFrame(rows, infer_schema_length=None)
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        data = buffer.getvalue()
        name = f"{piece.key}.{self._checksum(data)}.parquet"
        path = self.folder / "pieces" / name
        with replacing(path) as stream:
            stream.write(data)
        self.kept[piece.key] = path

    def _checksum(self, data: bytes) -> str:
        """Return a checksum of a piece, good for this study and code alone.

        RATIONALE: Parquet has none that is always there, and a reader may take
        damaged data for good, or end the process.
        """
        origin = f"{self.origin.key} ".encode()
        return hashlib.sha256(origin + data).hexdigest()[:16]

    def _facts(self) -> dict[str, Any]:
        study = self.study
        return {"version": __version__, "seed": study.seed, "study": asdict(study)}

    def _show(self, message: str = "") -> None:
        done = sum(self.costs[name] for name in self.kept)
        self.progress(done, sum(self.costs.values()), message)


@contextmanager
def _ctrl_c_remembered() -> Iterator[list[int]]:
    """Yield a list that is empty until Ctrl-C is pressed.

    RATIONALE: an exception that is raised in a destructor is printed and lost, and
    Dask's have much to do. There, Ctrl-C is remembered until the next piece is done.
    """
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        names = (f.f_code.co_name for f, _ in traceback.walk_stack(frame))
        if "__del__" not in names:
            raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Another handler decides, or SIGINT is ignored, as in a background job.
        yield seen
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold the folder for this process, or refuse."""
    try:
        (folder / "pieces").mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("ab")
    except OSError as error:
        raise InputError(
            f"cannot write there: {error.strerror}", where=str(folder)
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another run is at work here",
                where=str(folder),
                remedy="wait for it, or name another folder",
            ) from None
        except OSError:
            # Some parallel file systems have no locks. All is written whole, so
            # two runs would do no harm but the same work.
            pass
        else:
            _remove_leftovers(folder)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed run was about to write."""
    for pattern in (".*.json.????????", ".*.parquet.????????"):
        for path in (*folder.glob(pattern), *folder.glob(f"pieces/{pattern}")):
            with suppress(OSError):
                path.unlink()


def _content(path: Path) -> bytes:
    """Return the bytes of a file, none if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
