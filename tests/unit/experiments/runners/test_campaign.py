# SPDX-License-Identifier: MIT
"""Campaigns: pieces that are kept, computed again, or refused."""

from __future__ import annotations

import errno
import fcntl
import json
import random
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock import __version__
from penstock.errors import InputError, PolicyError
from penstock.experiments.runners import campaign, origin
from penstock.experiments.runners.campaign import run_studies, run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.runners.tasks import Results, Warn
from penstock.experiments.study import METRICS, Piece, Study, sweep
from penstock.files import replacing

POINTS = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.5, 0.8)})
STUDY = Study("t", POINTS, 3, ("fcfs", "fair-share"))
NAMES = [piece.key for piece in STUDY.pieces()]


class Recorder:
    """Computes in this process, records the requested pieces, and may stop."""

    def __init__(self, stop: BaseException | None = None, after: int = 99) -> None:
        self.stop, self.after = stop, after
        self.requested_pieces: list[str] = []
        self.closed = False

    def order(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        return pieces

    def run(self, pieces: Iterable[Piece], warn: Warn) -> Results:
        pieces = list(pieces)
        self.requested_pieces = [piece.key for piece in pieces]
        try:
            for number, piece in enumerate(self.order(pieces)):
                if self.stop is not None and number == self.after:
                    raise self.stop
                yield piece, piece.run()
        finally:
            self.closed = True


class Shuffled(Recorder):
    """Finishes the pieces in another order, as several workers do."""

    def order(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        return random.Random(7).sample(pieces, len(pieces))


class Log(list[Any]):
    """A progress function that remembers."""

    def __call__(self, done: float, total: float, message: str) -> None:
        self.append((done / total, message))

    @property
    def messages(self) -> list[str]:
        return [message for _, message in self if message]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_study(STUDY, folder, Inline())
    return (folder / "table.parquet").read_bytes()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, even if the tests run with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _files(folder: Path) -> dict[str, int]:
    paths = (folder / "pieces").iterdir()
    return {path.name: path.stat().st_mtime_ns for path in paths}


# --- What is made ----------------------------------------------------------------


def test_the_files_of_a_study(tmp_path: Path) -> None:
    table = run_study(STUDY, tmp_path / "a" / "b", Inline())
    folder = tmp_path / "a" / "b"
    made = {path.name for path in folder.iterdir()}
    assert made == {".lock", "pieces", "study.json", "table.parquet", "times.parquet"}
    assert [name[:11] for name in sorted(_files(folder))] == NAMES
    assert pl.read_parquet(folder / "table.parquet").equals(table)
    assert table.height == 2 * 3 * 2
    assert set(METRICS) < set(table.columns)
    assert "seconds" not in table.columns
    keys = ["point", "instance", "policy"]
    assert table.select(keys).equals(table.select(keys).sort(keys))
    times = pl.read_parquet(folder / "times.parquet")
    assert times.columns == [*keys, "seconds"]
    facts = json.loads(pl.read_parquet_metadata(folder / "table.parquet")["penstock"])
    assert (facts["version"], facts["seed"]) == (__version__, 1)
    assert facts["study"]["policies"] == ["fcfs", "fair-share"]


def test_the_table_does_not_depend_on_the_order_of_the_pieces(
    tmp_path: Path, expected: bytes
) -> None:
    run_study(STUDY, tmp_path, Shuffled())
    assert (tmp_path / "table.parquet").read_bytes() == expected


def test_the_longest_pieces_come_first(tmp_path: Path) -> None:
    executor = Recorder()
    run_study(STUDY, tmp_path, executor)
    costs = {piece.key: piece.cost() for piece in STUDY.pieces()}
    requested_costs = [costs[name] for name in executor.requested_pieces]
    assert requested_costs == sorted(costs.values(), reverse=True)
    assert requested_costs[0] > requested_costs[-1]


def test_progress_goes_from_nothing_to_all_by_cost(tmp_path: Path) -> None:
    log = Log()
    run_study(STUDY, tmp_path, Inline(), log)
    shares = [share for share, _ in log]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    assert len(log) == 1 + len(NAMES)
    assert log.messages == []


def test_points_may_have_different_settings(tmp_path: Path) -> None:
    points = (*sweep("synthetic", {"horizon": 20000.0}, {}), *POINTS[:1])
    table = run_study(replace(STUDY, points=points, instances=1), tmp_path, Inline())
    assert table["point"].to_list() == [0, 0, 1, 1]


# --- Going on --------------------------------------------------------------------


def test_a_first_run_does_not_mention_kept_pieces(tmp_path: Path) -> None:
    log = Log()
    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, tmp_path, Recorder(KeyboardInterrupt(), after=0), log)
    assert log.messages == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), PolicyError("policy p: bad")])
def test_a_stopped_run_keeps_its_pieces_and_the_next_computes_the_rest(
    tmp_path: Path, expected: bytes, stop: BaseException
) -> None:
    log = Log()
    first = Recorder(stop, after=2)
    with pytest.raises(type(stop)) as caught:
        run_study(STUDY, tmp_path, first, log)
    assert caught.value is stop
    assert first.closed
    assert log.messages == [
        f"2 of 6 pieces are kept in {tmp_path}: run the same command again to resume"
    ]
    kept = _files(tmp_path)
    assert len(kept) == 2
    second, log = Recorder(), Log()
    run_study(STUDY, tmp_path, second, log)
    assert sorted(second.requested_pieces) == sorted(
        set(NAMES) - {name[:11] for name in kept}
    )
    assert kept.items() <= _files(tmp_path).items()
    assert 0 < log[0][0] < 1
    assert (tmp_path / "table.parquet").read_bytes() == expected


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_destructor_is_not_lost(tmp_path: Path) -> None:
    class Litter:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    class Untidy(Recorder):
        def order(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
            Litter()
            return pieces

    log = Log()
    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, tmp_path, Untidy(), log)
    assert log.messages[0].startswith("1 of 6 pieces are kept")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_a_piece(tmp_path: Path) -> None:
    class Pressed(Recorder):
        def order(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
            signal.raise_signal(signal.SIGINT)
            return pieces

    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, tmp_path, Pressed())
    assert _files(tmp_path) == {}


def test_ctrl_c_is_ignored_where_it_was_ignored_before(
    tmp_path: Path, expected: bytes
) -> None:
    class Pressed(Recorder):
        def order(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
            signal.raise_signal(signal.SIGINT)
            return pieces

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_study(STUDY, tmp_path, Pressed())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "table.parquet").read_bytes() == expected


def test_a_finished_study_asks_no_executor(tmp_path: Path, expected: bytes) -> None:
    run_study(STUDY, tmp_path, Inline())
    (tmp_path / "table.parquet").unlink()
    executor, log = Recorder(), Log()
    run_study(STUDY, tmp_path, executor, log)
    assert (executor.requested_pieces, executor.closed) == ([], False)
    assert log == [(1, "")]
    assert (tmp_path / "table.parquet").read_bytes() == expected


def test_damaged_pieces_are_reported_and_computed_again(
    tmp_path: Path, expected: bytes
) -> None:
    run_study(STUDY, tmp_path, Inline())
    before = _files(tmp_path)
    cut, flipped, empty, alien = (tmp_path / "pieces" / n for n in sorted(before)[:4])
    cut.write_bytes(cut.read_bytes()[:100])
    data = bytearray(flipped.read_bytes())
    data[len(data) // 3] ^= 1
    flipped.write_bytes(data)
    empty.write_bytes(b"")
    other = tmp_path / "other"
    run_study(replace(STUDY, seed=2), other, Inline())
    alien.unlink()
    (other_piece,) = (other / "pieces").glob(f"{NAMES[3]}.*")
    alien = other_piece.rename(tmp_path / "pieces" / other_piece.name)
    executor, log = Recorder(), Log()
    run_study(STUDY, tmp_path, executor, log)
    assert sorted(executor.requested_pieces) == NAMES[:4]
    assert log.messages == [
        f"{path} is damaged: computing it again"
        for path in (cut, flipped, empty, alien)
    ]
    assert len(_files(tmp_path)) == len(NAMES)
    assert (tmp_path / "table.parquet").read_bytes() == expected


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    run_study(STUDY, tmp_path, Inline())
    for name in (".study.json.abcd1234", "pieces/.0000-000000.x.parquet.abcd_234"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".mine").write_bytes(b"not yours")
    run_study(STUDY, tmp_path, Inline())
    hidden = sorted(path.name for path in tmp_path.rglob(".*"))
    assert hidden == [".lock", ".mine"]


# --- Several studies -------------------------------------------------------------

OTHER = replace(STUDY, name="u", seed=2)


def _both(folder: Path) -> dict[Path, Study]:
    return {folder / "t": STUDY, folder / "u": OTHER}


def test_several_studies_have_the_tables_that_each_has_alone(
    tmp_path: Path, expected: bytes
) -> None:
    log = Log()
    run_studies(_both(tmp_path), Shuffled(), log)
    run_study(OTHER, tmp_path / "alone", Inline())
    assert (tmp_path / "t" / "table.parquet").read_bytes() == expected
    alone = (tmp_path / "alone" / "table.parquet").read_bytes()
    assert (tmp_path / "u" / "table.parquet").read_bytes() == alone
    assert (log[0][0], log[-1][0]) == (0, 1)


def test_stopped_together_and_resumed_together(tmp_path: Path, expected: bytes) -> None:
    log = Log()
    with pytest.raises(KeyboardInterrupt):
        run_studies(_both(tmp_path), Recorder(KeyboardInterrupt(), after=5), log)
    assert log.messages == [
        f"5 of 12 pieces are kept in {tmp_path}: run the same command again to resume"
    ]
    executor = Recorder()
    run_studies(_both(tmp_path), executor, log := Log())
    assert len(executor.requested_pieces) == 7
    assert 0 < log[0][0] < 1
    assert (tmp_path / "t" / "table.parquet").read_bytes() == expected


def test_a_study_that_is_whole_has_its_table_while_the_other_goes_on(
    tmp_path: Path,
) -> None:
    run_study(STUDY, tmp_path / "t", Inline())
    (tmp_path / "t" / "table.parquet").unlink()
    with pytest.raises(KeyboardInterrupt):
        run_studies(_both(tmp_path), Recorder(KeyboardInterrupt(), after=1))
    assert (tmp_path / "t" / "table.parquet").exists()
    assert not (tmp_path / "u" / "table.parquet").exists()


def test_a_refused_folder_stops_all_before_anything_is_computed(
    tmp_path: Path,
) -> None:
    run_study(replace(OTHER, instances=1), tmp_path / "u", Inline())
    executor = Recorder()
    with pytest.raises(InputError, match="holds results of another study"):
        run_studies(_both(tmp_path), executor)
    assert executor.requested_pieces == []


# --- Results of other code -------------------------------------------------------


def _computed_anew(study: Study, folder: Path, log: Log) -> list[str]:
    """Run a study again; return the names of the pieces that were computed."""
    executor = Recorder()
    run_study(study, folder, executor, log)
    return sorted(executor.requested_pieces)


def _of_other_code(folder: Path) -> list[str]:
    return [
        f"{folder} holds results of other code (penstock or a policy has changed "
        "since): computing them again"
    ]


def test_results_of_a_policy_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "changing_policy.py"
    policy.write_text(
        "def allocate(view, rates):\n"
        "    rates[view.active[0]] = view.cap[view.active[0]]\n"
        "    return float('inf')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    study = replace(STUDY, policies=("fcfs", "changing_policy.allocate"))
    out, log = tmp_path / "out", Log()
    run_study(study, out, Inline())
    assert _computed_anew(study, out, log) == []
    policy.write_text(policy.read_text() + "# better\n")
    assert _computed_anew(study, out, log) == NAMES
    assert log.messages == _of_other_code(out)
    assert _computed_anew(study, out, Log()) == []


def test_results_of_other_code_are_reported_and_computed_again(
    tmp_path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(origin, "source_digest", lambda: "of last week")
        run_study(STUDY, tmp_path, Inline())
    before = set(_files(tmp_path))
    log = Log()
    assert _computed_anew(STUDY, tmp_path, log) == NAMES
    assert log.messages == _of_other_code(tmp_path)
    assert before.isdisjoint(_files(tmp_path))
    assert (tmp_path / "table.parquet").read_bytes() == expected
    assert _computed_anew(STUDY, tmp_path, Log()) == []


def test_no_table_of_other_code_is_left_by_a_run_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(STUDY, tmp_path, Inline())
    monkeypatch.setattr(origin, "source_digest", lambda: "changed")
    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, tmp_path, Recorder(KeyboardInterrupt(), after=1))
    assert list(tmp_path.glob("*.parquet")) == []
    assert len(_computed_anew(STUDY, tmp_path, log := Log())) == len(NAMES) - 1
    assert log.messages == []


# --- What is refused -------------------------------------------------------------


def test_the_folder_of_another_study_is_left_alone(tmp_path: Path) -> None:
    run_study(replace(STUDY, instances=1), tmp_path, Inline())
    before = _files(tmp_path)
    with pytest.raises(InputError) as caught:
        run_study(STUDY, tmp_path, Inline())
    assert str(caught.value) == (
        f"{tmp_path}: holds results of another study, or of another scale "
        "(name another folder, or remove this one)"
    )
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("record", "version"),
    [(b'{"version": "0.0.1"}', "0.0.1"), (b"", "(unknown)"), (b"[1]", "(unknown)")],
)
def test_the_folder_of_another_version(
    tmp_path: Path, record: bytes, version: str
) -> None:
    (tmp_path / "study.json").write_bytes(record)
    with pytest.raises(InputError) as caught:
        run_study(STUDY, tmp_path, Inline())
    assert str(caught.value) == (
        f"{tmp_path}: holds results of penstock {version}; this is {__version__} "
        "(name another folder, or remove this one)"
    )


def test_one_run_at_a_time_in_a_folder(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another run uses this folder"):
            run_study(STUDY, tmp_path, Inline())
    run_study(STUDY, tmp_path, Inline())


def test_a_file_system_without_locks_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert run_study(STUDY, tmp_path, Inline()).height == 12


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write there: Not a directory"):
        run_study(STUDY, tmp_path / "file" / "out", Inline())


def test_a_piece_that_cannot_be_written_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = replacing

    def full(path: Path) -> Any:
        if path.name.startswith("0001"):
            raise InputError("cannot write the file: No space left", where=str(path))
        return real(path)

    monkeypatch.setattr(campaign, "replacing", full)
    executor, log = Recorder(), Log()
    with pytest.raises(InputError, match="No space left"):
        run_study(STUDY, tmp_path, executor, log)
    assert executor.closed
    assert log.messages[0].startswith("1 of 6 pieces are kept")
