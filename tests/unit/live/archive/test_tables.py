# SPDX-License-Identifier: MIT
"""Grants survive their short form, and files of other versions are refused."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from math import inf
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.tables import (
    DATABASE,
    decode_grants,
    encode_grants,
    give_back_space,
    open_database,
    whole_rate,
)
from support.archives import operation, record, run


@given(
    begin=st.floats(0.0, 1e9),
    length=st.floats(0.01, 1e5),
    parts=st.lists(st.floats(0.0, 0.99), min_size=1, max_size=4, unique=True),
    rate=st.floats(1.0, 1e12),
)
def test_grants_come_back(
    begin: float, length: float, parts: list[float], rate: float
) -> None:
    grants = [(begin + part * length, rate) for part in sorted(parts)]
    data = encode_grants(grants, begin, begin + length)
    assert len(data) == 6 * len(grants)
    for (instant, kept), (given_instant, _) in zip(
        decode_grants(data, begin, begin + length), grants, strict=True
    ):
        assert instant == pytest.approx(given_instant, abs=length / 60_000 + 1e-6)
        assert kept == pytest.approx(rate, rel=1e-6, abs=1.0)


def test_a_rate_without_limit_stays_without_limit() -> None:
    data = encode_grants([(0.0, inf)], 0.0, 1.0)
    assert decode_grants(data, 0.0, 1.0) == [(0.0, inf)]


def test_a_small_rate_is_not_taken_for_no_limit() -> None:
    assert whole_rate(0.0) == 1
    assert whole_rate(inf) == 0


def test_grants_after_the_end_are_left_out() -> None:
    assert len(encode_grants([(0.0, 1.0), (2.0, 1.0)], 0.0, 1.0)) == 6


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "archive")):
        mode = (tmp_path / "archive" / DATABASE).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="of version 99"):
        open_database(tmp_path)


def test_an_archive_of_the_first_version_is_read_and_continued(tmp_path: Path) -> None:
    """It had a column `released_ms`, always `joined_ms`, and no limits of operators."""
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
        database.execute("ALTER TABLE runs ADD COLUMN released_ms INTEGER DEFAULT 0")
        database.execute("ALTER TABLE runs DROP COLUMN limit_rate")
        database.execute("ALTER TABLE runs DROP COLUMN policies")
        database.execute("ALTER TABLE runs DROP COLUMN missing")
        database.execute("DROP TABLE clock")
        database.execute("PRAGMA user_version = 1")
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["a"]
    record(tmp_path, (run("7:b", limit=5.0), []))
    runs = ArchiveReader(tmp_path).runs()
    assert [(r.name, r.limit) for r in runs] == [("a", inf), ("b", 5.0)]


def test_deleted_rows_give_their_space_back(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        with database:
            database.executemany(
                "INSERT INTO operations VALUES (1, 1, 1, 1, 1, 1, 1, 'x', ?)",
                [(bytes(500),)] * 2000,
            )
        with database:
            database.execute("DELETE FROM operations")
        give_back_space(database)
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
    assert free == 0
    assert (tmp_path / DATABASE).stat().st_size < 100_000
