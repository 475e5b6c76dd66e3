# SPDX-License-Identifier: MIT
"""Run studies piece by piece on any executor, keep the pieces, resume after a stop.

The folder of a study::

    study.json                      the declaration of the study, and its code
    pieces/PPPP-IIIIII.SUM.parquet  finished pieces: point, first instance, checksum
    table.parquet                   all rows, sorted, without the times
    times.parquet                   how long each simulation took

Every file is written completely or not at all. A run may be stopped at any moment and
resumed with the same command: finished pieces are not computed again, and
`table.parquet` has the same bytes as after a run that was not stopped. A piece with a
wrong checksum is reported and computed again. All pieces are computed again if the code
of penstock or of a policy has changed since (see the module `origin`).

Several studies run together: their pieces are computed in one order, so that all
processors are busy until the end (`penstock.experiments.runners.piece_order`).
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import polars as pl

from penstock import __version__
from penstock.errors import InputError
from penstock.experiments.output.tables import write_parquet
from penstock.experiments.runners.executors import Executor, Progress
from penstock.experiments.runners.origin import Origin, origin_of
from penstock.experiments.runners.piece_order import PieceOrder
from penstock.experiments.runners.tasks import Warn
from penstock.experiments.study import Declaration, Piece, Row
from penstock.files import replacing

__all__ = ["run_studies", "run_study"]

#: Where a piece keeps how long it took, in the metadata of its file.
_SECONDS: Final = "penstock-seconds"


def run_study(
    study: Declaration,
    folder: Path,
    executor: Executor,
    progress: Progress = lambda _done, _total, _message: None,
) -> pl.DataFrame:
    """Compute the pieces that `folder` lacks; return the table of all rows.

    Raises `InputError` if the folder cannot be written, another run uses it, or it
    holds results of another study.
    """
    run_studies({folder: study}, executor, progress)
    return pl.read_parquet(folder / "table.parquet")


def run_studies(
    studies: Mapping[Path, Declaration],
    executor: Executor,
    progress: Progress = lambda _done, _total, _message: None,
) -> None:
    """Compute the pieces that the folders of the studies lack; write their tables.

    Raises `InputError` as `run_study` does, before anything is computed.
    """
    with ExitStack() as locks:
        for folder in studies:
            locks.enter_context(_locked(folder))
        kept = [_KeptStudy(s, folder, origin_of(s)) for folder, s in studies.items()]
        campaign = _Campaign(kept, progress)
        campaign.find_kept()
        campaign.compute_missing(executor)


@dataclass(slots=True)
class _Campaign:
    """Several studies, and the order in which their pieces are computed."""

    studies: list[_KeptStudy]
    progress: Progress
    order: PieceOrder = field(default_factory=PieceOrder)

    def find_kept(self) -> None:
        """Find the finished pieces of all studies; write the tables of whole ones."""
        for study in self.studies:
            study.check_origin(self._show)
        for study in self.studies:
            study.find_kept(self._show)
            seconds = study.seconds.items()
            self.order.add(
                ((piece, study.costs[piece.key]) for piece in study.missing()),
                ((study.costs[key], spent_s) for key, spent_s in seconds),
            )
            if study.is_whole:
                study.gather()
        self._show()

    def compute_missing(self, executor: Executor) -> None:
        """Compute and keep the pieces that are not finished."""
        if all(study.is_whole for study in self.studies):
            return
        try:
            self._compute(executor)
        finally:
            done = sum(len(study.kept) for study in self.studies)
            total = sum(len(study.pieces) for study in self.studies)
            if 0 < done < total:
                folders = [study.folder for study in self.studies]
                place = folders[0] if len(folders) == 1 else folders[0].parent
                self._show(
                    f"{done} of {total} pieces are kept in {place}: run the same "
                    "command again to resume"
                )

    def _compute(self, executor: Executor) -> None:
        by_declaration = {id(study.study): study for study in self.studies}
        # Closed before an error goes on: no worker is left when its message appears.
        with (
            _ctrl_c_remembered() as stopped,
            closing(executor.run(self.order, self._show)) as results,
        ):
            for piece, rows in results:
                study = by_declaration[id(piece.study)]
                study.keep(piece, rows, self.order.finish(piece))
                if study.is_whole:
                    study.gather()
                self._show()
                if stopped:
                    raise KeyboardInterrupt

    def _show(self, message: str = "") -> None:
        done_s = self.order.done_s()
        total_s = done_s + self.order.remaining_s()
        self.progress(*((done_s, total_s) if total_s > 0 else (1.0, 1.0)), message)


@dataclass(slots=True)
class _KeptStudy:
    """A study, its folder, and its finished pieces."""

    study: Declaration
    folder: Path
    origin: Origin
    pieces: dict[str, Piece] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    """Files of finished pieces."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long the finished pieces took (s)."""

    def __post_init__(self) -> None:
        self.pieces = {piece.key: piece for piece in self.study.pieces()}
        self.costs = {name: piece.cost() for name, piece in self.pieces.items()}

    @property
    def is_whole(self) -> bool:
        """Whether all pieces are finished."""
        return len(self.kept) == len(self.pieces)

    def missing(self) -> list[Piece]:
        """Return the pieces that are not finished."""
        return [piece for key, piece in self.pieces.items() if key not in self.kept]

    def check_origin(self, warn: Warn) -> None:
        """Remove results of other code; raise if the folder is of another study."""
        if not self.origin.accepts(self.folder):
            warn(
                f"{self.folder} holds results of other code (penstock or a policy has "
                "changed since): computing them again"
            )
            for path in (*self.folder.glob("*.parquet"), *self._kept_files()):
                with suppress(OSError):
                    path.unlink()
        # Last: if the run stops before, the folder still names the other code.
        self.origin.sign(self.folder)

    def find_kept(self, warn: Warn) -> None:
        """Find the finished pieces; report and remove damaged ones."""
        for path in self._kept_files():
            name, _, checksum = path.stem.partition(".")
            content = _content(path)
            if name in self.pieces and checksum == self._checksum(content):
                self.kept[name] = path
                self.seconds[name] = _seconds(content)
            else:
                warn(f"{path} is damaged: computing it again")
                with suppress(OSError):
                    path.unlink()

    def gather(self) -> None:
        """Join the pieces; write the table, and the times to a file of their own."""
        frames = (pl.read_parquet(self.kept[name]) for name in self.pieces)
        rows = pl.concat(frames, how="diagonal_relaxed")
        table, times = self.study.arranged(rows)
        write_parquet(times, self.folder / "times.parquet", self._facts())
        write_parquet(table, self.folder / "table.parquet", self._facts())

    def keep(self, piece: Piece, rows: list[Row], spent_s: float) -> None:
        """Write the rows of a piece, and how long it took, to a file."""
        frame = pl.DataFrame(rows, infer_schema_length=None)
        buffer = io.BytesIO()
        frame.write_parquet(buffer, metadata={_SECONDS: f"{spent_s:.6f}"})
        data = buffer.getvalue()
        name = f"{piece.key}.{self._checksum(data)}.parquet"
        path = self.folder / "pieces" / name
        with replacing(path) as stream:
            stream.write(data)
        self.kept[piece.key] = path

    def _kept_files(self) -> list[Path]:
        return sorted((self.folder / "pieces").glob("*.parquet"))

    def _checksum(self, data: bytes) -> str:
        """Return a checksum of a piece that is valid for this study and code only.

        RATIONALE: checksums are optional in Parquet. A reader may accept damaged
        data, or crash.
        """
        origin = f"{self.origin.key} ".encode()
        return hashlib.sha256(origin + data).hexdigest()[:16]

    def _facts(self) -> dict[str, Any]:
        study = self.study
        return {"version": __version__, "seed": study.seed, "study": asdict(study)}


@contextmanager
def _ctrl_c_remembered() -> Iterator[list[int]]:
    """Yield a list that is empty until Ctrl-C is pressed.

    RATIONALE: Python prints and drops an exception that is raised in a destructor, and
    the destructors of Dask run long. If Ctrl-C is pressed there, the list remembers it
    until the next piece is done.
    """
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        names = (f.f_code.co_name for f, _ in traceback.walk_stack(frame))
        if "__del__" not in names:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Another handler decides, or SIGINT is ignored, as in a background job.
        if is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # Polars has installed a handler, which Python does not know of.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield seen
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder for this process; raise `InputError` if another one has it."""
    try:
        (folder / "pieces").mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("ab")
    except OSError as error:
        raise InputError(
            f"cannot write there: {error.strerror}",
            where=str(folder),
            remedy="choose another folder",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another run uses this folder",
                where=str(folder),
                remedy="wait until it ends, or name another folder",
            ) from None
        except OSError:
            # Some parallel file systems have no locks. Files are replaced as a whole,
            # so two runs only do the same work twice.
            pass
        else:
            _remove_leftovers(folder)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of a run that was killed."""
    for pattern in (".*.json.????????", ".*.parquet.????????"):
        for path in (*folder.glob(pattern), *folder.glob(f"pieces/{pattern}")):
            with suppress(OSError):
                path.unlink()


def _content(path: Path) -> bytes:
    """Return the bytes of a file, or no bytes if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _seconds(content: bytes) -> float:
    """Return how long a piece took (s), from its valid file."""
    return float(pl.read_parquet_metadata(io.BytesIO(content)).get(_SECONDS, 0.0))
