# SPDX-License-Identifier: MIT
"""A figure: its declaration, its claims, and the files that it leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.errors import InputError, InternalError
from penstock.experiments.claims import Claim, Tables, Verdict, case, judge
from penstock.experiments.reproduction import (
    Reproduction,
    Scale,
    reproduce,
    reproduce_all,
)
from penstock.experiments.runners.executors import Inline, Progress
from penstock.experiments.study import Declaration, Piece, Row, Study, sweep

ROWS = pl.DataFrame({"policy": ["a", "b"], "ratio": [1.5, 2.5], "all": [[1], [2]]})
ENDINGS = ("svg", "png", "parquet", "csv")


class _Counting(Inline):
    """An executor that counts the pieces that it computes."""

    def __init__(self) -> None:
        self.computed = 0

    def run(self, tasks: Any, warn: Any) -> Any:
        for task, result in super().run(tasks, warn):
            self.computed += 1
            yield task, result


@dataclass(frozen=True, slots=True)
class _FixedRows(Declaration):
    """A study of one piece with the rows of `ROWS`."""

    CONTENDER = ()

    def rows(self, point: int, index: int) -> Iterator[Row]:
        return ROWS.iter_rows(named=True)

    def pieces(self) -> Iterator[Piece]:
        yield Piece(self, 0, 0, 1)

    def cost_of(self, piece: Piece) -> float:
        return 1.0

    def arranged(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        return rows, pl.DataFrame()

    def foreign_code(self) -> Iterator[Any]:
        return iter(())


def _draw(tables: Tables) -> Figure:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot(range(tables.rows.height))
    return figure


def _study(scale: Scale) -> Study:
    points = sweep("synthetic", {"horizon": 20_000.0}, {"pressure": (0.5, 0.8)})
    return Study("tiny", points, 2 if scale is Scale.SMOKE else 3, ("fcfs",), seed=5)


def _figure(name: str = "fig", study: Any = _study, **changes: Any) -> Reproduction:
    """Return a figure with one claim, which holds."""
    figure = Reproduction(name, "A <figure>", "paper 0", study, _draw, **changes)
    figure.claim("There are rows.", name="c", source="here")(
        lambda _tables: Verdict(True, {"n": 1})
    )
    return figure


def _empty_figure() -> Reproduction:
    """Return a figure without claims."""
    return Reproduction("fig", "A figure", "paper 0", _study, _draw)


def _table(name: str = "tab") -> Reproduction:
    return _figure(name, _rows_of(name))


def _rows_of(name: str) -> Any:
    return lambda _scale: _FixedRows(name, (), 1)


def _no_progress(_done: float, _total: float, _message: str) -> None:
    pass


def _make(figure: Reproduction, folder: Path, executor: Any = None) -> dict[str, Any]:
    return reproduce(figure, Scale.SMOKE, folder, executor or Inline(), _no_progress)


def _make_all(
    figures: Sequence[Reproduction],
    folder: Path,
    executor: Any = None,
    progress: Progress = _no_progress,
) -> list[dict[str, Any]]:
    by_name = {figure.name: figure for figure in figures}
    return reproduce_all(
        list(by_name),
        by_name.__getitem__,
        Scale.SMOKE,
        folder,
        executor or Inline(),
        progress,
    )


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_claim_is_declared_above_its_check() -> None:
    figure = _empty_figure()

    @figure.claim("There are two rows.", reason="why")
    def two_rows(tables: Tables) -> Verdict:
        return Verdict(tables.rows.height == 2, {"rows": tables.rows.height})

    @figure.claim("So there are.", name="again", source="paper 0, section 1")
    def other(tables: Tables) -> Verdict:
        return two_rows(tables)

    first, second = figure.claims
    assert first == Claim("two-rows", "paper 0", "There are two rows.", two_rows, "why")
    assert second == Claim("again", "paper 0, section 1", "So there are.", other)


def test_one_function_checks_several_sentences_in_the_order_given() -> None:
    figure = _empty_figure()

    @figure.claim_cases(
        case("a-low", "The ratio of a is under 2.", policy="a"),
        case("b-low", "The ratio of b is under 2.", policy="b", source="s", reason="n"),
    )
    def low(tables: Tables, policy: str) -> Verdict:
        ratio = tables.rows.filter(pl.col("policy") == policy)["ratio"].item()
        return Verdict(ratio < 2, {policy: ratio})

    records = judge(figure.claims, Tables(ROWS, pl.DataFrame()))
    assert [(r["name"], r["source"], r["holds"], r["numbers"]) for r in records] == [
        ("a-low", "paper 0", True, {"a": 1.5}),
        ("b-low", "s", False, {"b": 2.5}),
    ]
    assert records[1]["reason"] == "n"


def test_the_name_of_a_claim_is_used_once_per_figure() -> None:
    figure, other = _empty_figure(), _empty_figure()

    def check(_tables: Tables) -> Verdict:
        return Verdict(True, {})

    figure.claim("One.")(check)
    other.claim("One.")(check)
    with pytest.raises(InternalError, match="fig: claim check is declared twice"):
        figure.claim("Two.")(check)


def test_claims_drawing_and_summary_see_the_prepared_tables(tmp_path: Path) -> None:
    seen: list[pl.DataFrame] = []

    def prepare(tables: Tables) -> Tables:
        return Tables(tables.rows.filter(pl.col("policy") == "b"), tables.times)

    def draw(tables: Tables) -> Figure:
        seen.append(tables.rows)
        return Figure()

    figure = Reproduction("tab", "", "", _rows_of("tab"), draw, prepare)

    @figure.claim("One row is left.")
    def one_row(tables: Tables) -> Verdict:
        return Verdict(tables.rows.height == 1, {"rows": tables.rows.height})

    record = _make(figure, tmp_path)
    assert record["claims"][0]["numbers"] == {"rows": 1.0}
    assert seen[0]["policy"].to_list() == ["b"]
    kept = pl.read_parquet(tmp_path / "tab" / "tab.parquet")
    assert kept.equals(ROWS.filter(pl.col("policy") == "b"))


@pytest.mark.parametrize("figure", [_figure("x"), _table("x")], ids=["study", "rows"])
def test_all_files_of_a_figure_are_valid(figure: Reproduction, tmp_path: Path) -> None:
    record = _make(figure, tmp_path)
    home = tmp_path / "x"
    expected = {*(f"x.{ending}" for ending in ENDINGS), "claims.json", "index.html"}
    assert {path.name for path in home.iterdir()} == expected
    root = ET.parse(home / "x.svg").getroot()  # noqa: S314 - our own file
    assert root.tag.endswith("svg")
    assert (home / "x.png").read_bytes().startswith(b"\x89PNG")
    table = pl.read_parquet(home / "x.parquet")
    assert table.height == (4 if figure.study is _study else 2)
    assert pl.read_csv(home / "x.csv").height == table.height
    assert json.loads((home / "claims.json").read_text()) == record
    assert "A &lt;figure&gt;" in (home / "index.html").read_text()


def test_the_record_holds_seed_and_instances_of_the_study(tmp_path: Path) -> None:
    record = _make(_figure(), tmp_path)
    assert record["provenance"]["seed"] == 5
    assert record["provenance"]["scale"] == "smoke"
    assert record["instances"] == 2
    assert [claim["holds"] for claim in record["claims"]] == [True]
    metadata = pl.read_parquet_metadata(tmp_path / "fig" / "fig.parquet")
    assert json.loads(metadata["penstock"]) == record["provenance"]


def test_a_table_without_points_has_no_seed_and_no_instances(tmp_path: Path) -> None:
    record = _make(_table(), tmp_path)
    assert record["provenance"]["seed"] is None
    assert record["instances"] is None
    assert pl.read_parquet(tmp_path / "tab" / "tab.parquet").equals(ROWS)
    page = (tmp_path / "tab" / "index.html").read_text()
    assert "instances per point" not in page
    assert "These results are of smoke scale" in page


def test_figures_of_two_scales_are_not_mixed_in_a_folder(tmp_path: Path) -> None:
    figure = _table()
    _make(figure, tmp_path)
    with pytest.raises(InputError, match=r"holds figures of smoke scale \(give anoth"):
        reproduce_all(
            ["tab"], lambda _: figure, Scale.PAPER, tmp_path, Inline(), _no_progress
        )


def test_times_are_apart_from_rows_and_the_summary_is_kept(tmp_path: Path) -> None:
    seen: list[Tables] = []

    def summary(tables: Tables) -> pl.DataFrame:
        seen.append(tables)
        return tables.rows.select("policy").unique()

    _make(_figure(summary=summary), tmp_path)
    assert "seconds" in seen[0].times.columns
    assert "seconds" not in seen[0].rows.columns
    assert seen[0].times.height == seen[0].rows.height == 4
    kept = pl.read_parquet(tmp_path / "fig" / "fig.parquet")
    assert kept.to_dicts() == [{"policy": "fcfs"}]


def test_the_scale_reaches_the_study(tmp_path: Path) -> None:
    record = reproduce(_figure(), Scale.PAPER, tmp_path, Inline(), _no_progress)
    assert record["instances"] == 3
    assert record["provenance"]["scale"] == "paper"


def test_the_same_command_gives_the_same_bytes_and_computes_nothing_twice(
    tmp_path: Path,
) -> None:
    figures = [_figure(), _table()]
    counting = _Counting()
    here, there = tmp_path / "here", tmp_path / "there"
    _make_all(figures, here, counting)
    before = _content(here)
    _make_all(figures, here, counting)
    assert counting.computed == 4 + 1
    assert _content(here) == before
    _make_all(figures, there)
    elsewhere = _content(there)
    # Simulation times differ from run to run; only times and pieces hold them.
    same = {n for n in before if "pieces" not in n and "times" not in n}
    assert {n: elsewhere[n] for n in same} == {n: before[n] for n in same}


def test_figures_with_the_same_study_compute_it_once(tmp_path: Path) -> None:
    counting = _Counting()
    figures = [_figure("one"), _figure("two")]
    _make_all(figures, tmp_path, counting)
    assert counting.computed == 4
    index = (tmp_path / "index.html").read_text()
    assert "one/index.html" in index
    assert "two/index.html" in index
    assert "2 of 2 claims hold" in index


def test_progress_is_reported(tmp_path: Path) -> None:
    calls: list[tuple[float, float, str]] = []
    reproduce(
        _figure(), Scale.SMOKE, tmp_path, Inline(), lambda *args: calls.append(args)
    )
    done, total, _ = calls[-1]
    assert done == total > 0


def _index(folder: Path) -> tuple[str, list[str]]:
    """Reproduce a table; return the index page and the messages."""
    messages: list[str] = []
    _make_all([_table()], folder, progress=lambda _d, _t, m: messages.append(m))
    return (folder / "index.html").read_text(), [m for m in messages if m]


def test_figures_made_earlier_stay_in_the_index(tmp_path: Path) -> None:
    _make(_table("earlier"), tmp_path)
    index, messages = _index(tmp_path)
    assert "earlier/index.html" in index
    assert "2 of 2 claims hold" in index
    assert messages == []


def _checked_record(**wrong: Any) -> str:
    """Return the record of a figure with one claim, a field of which is wrong."""
    claim = {"says": "So.", "source": "", "holds": False, "numbers": {}, **wrong}
    origin = {"version": "1", "command": "c"}
    facts = {"name": "zzz", "title": "T", "source": "", "provenance": origin}
    return json.dumps({**facts, "claims": [claim]})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"a": 1}',
        '{"name": "zzz"}',
        '{"name": "zzz", "title": 1, "source": "", "claims": [], "provenance": {}}',
        _checked_record(outcome="unknown"),
        _checked_record(holds_at="20"),
        _checked_record(depends_on=None),
        _checked_record(spread=[]),
        '{"name": "\udcff"}',
        "moved",
    ],
)
def test_an_invalid_record_is_reported_and_left_out(tmp_path: Path, text: str) -> None:
    _make(_table("other"), tmp_path)
    if text == "moved":
        (tmp_path / "other").rename(tmp_path / "zzz")
    else:
        (tmp_path / "zzz").mkdir()
        (tmp_path / "zzz" / "claims.json").write_bytes(os.fsencode(text))
    index, messages = _index(tmp_path)
    assert "zzz" not in index
    path = tmp_path / "zzz" / "claims.json"
    assert messages == [f"{path} cannot be read: not in the index"]
