# SPDX-License-Identifier: MIT
"""Bandwidth profiles: the sets that come with penstock, and reading one's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, UnknownNameError
from penstock.model import Application
from penstock.model.problem import Problem
from penstock.workloads.profiles.profiles import CASES, profiles, read_profiles


def _file(folder: Path, text: str) -> Path:
    path = folder / "measured.csv"
    path.write_text(text, encoding="utf-8")
    return path


# --- The sets that come with penstock ---------------------------------------------


@pytest.mark.parametrize(("case", "count"), [("io-nodes", 189), ("osts", 301)])
def test_as_many_profiles_as_in_the_paper(case: str, count: int) -> None:
    known = profiles(case)
    assert len(known) == len({profile.name for profile in known}) == count
    for profile in known:
        assert profile.bandwidth.shape == (8,)
        assert profile.bandwidth.min() > 0
        assert not profile.bandwidth.flags.writeable


def test_a_scenario_of_marenostrum_by_hand() -> None:
    first = profiles("io-nodes")[0]
    assert first.name == "1536-32-0-0-1024-1"
    # 117.678, 339.428, 756.006 and 1712.394 MB/s on 1, 2, 4 and 8 I/O nodes.
    expected = [117.678, 339.428, 547.717, 756.006, 995.103, 1234.2, 1473.297, 1712.394]
    assert first.bandwidth == pytest.approx(1e6 * np.array(expected), rel=1e-12)


def test_best_number_of_io_nodes() -> None:
    # With medians instead of means there would be 12 and 89 with their best at 1 and 2.
    best = Counter(int(p.bandwidth.argmax()) + 1 for p in profiles("io-nodes"))
    assert best == {1: 10, 2: 91, 4: 16, 8: 72}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("work", [0.0, 10.0, 1e4])
def test_n_sys_never_exceeds_n_perf(case: str, work: float) -> None:
    # Lemma 1 of target allocation.
    applications = tuple(
        Application.from_phases(
            p.name,
            1,
            [("work", work), ("io", 1000 * p.bandwidth[0])],
            profile=p.bandwidth,
        )
        for p in profiles(case)
    )
    problem = Problem(20, 480, applications)
    for j in range(len(applications)):
        assert problem.n_sys(j) <= problem.n_perf(j)


def test_an_unknown_set_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match="known: io-nodes, osts"):
        profiles("ost")


# --- One's own measurements -------------------------------------------------------


def test_repetitions_are_averaged_and_gaps_are_linear(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "# measured at night\n"
        "run,name,bandwidth,targets\n"
        "1,climate,1 GB/s,1\n"
        "2,climate,3e9,4\n"
        "\n"
        '3,"climate", 5 GB/s ,4\n'
        "4,fusion,7 MiB/s,1\n"
        "5,climate,2 GB/s,6\n",
    )
    climate, fusion = read_profiles(path)
    assert (climate.name, fusion.name) == ("climate", "fusion")
    assert climate.bandwidth == pytest.approx([1e9, 2e9, 3e9, 4e9, 3e9, 2e9], rel=1e-12)
    assert fusion.bandwidth.tolist() == [7 * 2**20]


@pytest.mark.parametrize("text", ["\ufeffname,targets,bandwidth\na,1,5\n"])
def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path, text: str) -> None:
    assert read_profiles(_file(tmp_path, text))[0].bandwidth.tolist() == [5.0]


HEADER = "name,targets,bandwidth\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 'name' is missing (the first line must name name, targets, "
         "bandwidth)"),
        ("name,n,bandwidth\na,1,1\n", "column 'targets' is missing"),
        ("name,targets,bandwidth,name\na,1,1,a\n", "'name' is given more than once"),
        (HEADER, "no measurements"),
        (HEADER + "a,1,1\na,2,0\n", "line 3: '0' is not a positive bandwidth"),
        (HEADER + "# x\n\na,1,-5 MB/s\n", "line 4: '-5 MB/s' is not a positive"),
        (HEADER + "a,1,nan\n", "line 2: 'nan' is not a finite bandwidth"),
        (HEADER + "a,1,\n", "line 2: '' is not a bandwidth"),
        (HEADER + "a,1,5 MB\n", "line 2: unknown unit 'MB' in '5 MB'"),
        (HEADER + "a,0,5\n", "line 2: '0' is not a number of targets"),
        (HEADER + "a,-1,5\n", "line 2: '-1' is not a number of targets"),
        (HEADER + "a,1.5,5\n", "line 2: '1.5' is not a number of targets"),
        (HEADER + "a,²,5\n", "line 2: '²' is not a number of targets"),
        (HEADER + f"a,{10**9},5\n", "line 2: '1000000000' is not a number of targets"),
        (HEADER + ",1,5\n", "line 2: the name is empty"),
        (HEADER + "a,1\n", "line 2: 2 values under 3 columns"),
        (HEADER + "a,1,5,6\n", "line 2: 4 values under 3 columns"),
        (HEADER + 'a,1,"5\n', "line 2: not CSV"),
        (HEADER + "a,1,1\nb,2,1\nb,4,1\n", "line 3: 'b' was not measured on 1 target"),
    ],
)  # fmt: skip
def test_a_mistake_gets_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_profiles(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_profiles(path)
    with pytest.raises(InputError, match="cannot read the file"):
        read_profiles(tmp_path)
    with pytest.raises(InputError, match="cannot read the file"):
        read_profiles(tmp_path / "none.csv")


RUNS = st.dictionaries(
    st.integers(1, 12),
    st.lists(st.floats(1e-3, 1.7e308), min_size=1, max_size=3),
    min_size=1,
).filter(lambda runs: 1 in runs)


@given(RUNS, st.randoms(use_true_random=False))
def test_a_profile_meets_its_measurements(
    tmp_path_factory: pytest.TempPathFactory, runs: dict[int, list[float]], order: Any
) -> None:
    lines = [f"a,{n},{value!r}\n" for n, values in runs.items() for value in values]
    order.shuffle(lines)
    path = _file(tmp_path_factory.mktemp("profiles"), HEADER + "".join(lines))
    (profile,) = read_profiles(path)
    assert len(profile.bandwidth) == max(runs)
    for n, values in runs.items():
        mean = sum(value / len(values) for value in values)
        assert profile.bandwidth[n - 1] == pytest.approx(mean, rel=1e-9)
    # Linear where nothing was measured: no kink.
    for n in set(range(2, max(runs))) - runs.keys():
        before, here, after = profile.bandwidth[n - 2 : n + 1].tolist()
        scale = max(before, after)
        assert here / scale == pytest.approx(
            (before / scale + after / scale) / 2, rel=1e-9, abs=1e-9
        )
