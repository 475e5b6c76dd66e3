# SPDX-License-Identifier: MIT
"""Options that several commands share."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from pathlib import Path

import pytest

from penstock.cli import options
from penstock.errors import InputError
from penstock.experiments.runners.executors import Inline, LocalPool
from penstock.experiments.source import FilePoint
from penstock.policies import get_policy
from penstock.workloads import Synthetic

THREE = str(Path(__file__).parents[3] / "examples" / "three.json")


def _source_arguments(*words: str) -> Namespace:
    parser = argparse.ArgumentParser()
    options.add_source_options(parser, instances=4)
    return parser.parse_args(words)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("12", 12)])
def test_whole_numbers(text: str, number: int) -> None:
    assert options.positive(text) == options.natural(text) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", ""])
def test_a_number_that_is_not_positive_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="whole number of at least 1"):
        options.positive(text)


def test_zero_is_a_natural_number() -> None:
    assert options.natural("0") == 0
    with pytest.raises(argparse.ArgumentTypeError, match="at least 0"):
        options.natural("-1")


def test_a_workload_is_drawn_with_its_settings_and_its_seed() -> None:
    words = ("--set", "horizon=20000", "--set", "W=0.5", "--seed", "0")
    source = options.source_from(_source_arguments(*words))
    assert (source.count, source.seed, source.aimed_pressure) == (4, 0, 0.5)
    expected = Synthetic(horizon=20_000.0, pressure=0.5).instance(0, 3)
    assert source.instance(3).digest() == expected.digest()


def test_a_file_is_read_at_once(tmp_path: Path) -> None:
    source = options.source_from(_source_arguments(THREE))
    assert source.point == FilePoint(THREE)
    assert source.count == 1
    with pytest.raises(InputError, match="cannot read the file"):
        options.source_from(_source_arguments(str(tmp_path / "none.json")))


@pytest.mark.parametrize("words", [("--seed", "0"), ("--set", "W=1")])
def test_options_of_workloads_are_refused_with_a_file(words: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=f"{words[0]} cannot be used with an instance"):
        options.source_from(_source_arguments(THREE, *words))


def test_the_provenance_names_the_source() -> None:
    facts = options.source_facts(_source_arguments("--set", "W=1"))
    assert facts == {"workload": "synthetic", "settings": ["W=1"], "seed": 1}
    assert options.source_facts(_source_arguments(THREE)) == {"instance": THREE}


def test_options_that_are_not_given_exclude_nothing() -> None:
    arguments = Namespace(a=None, b=False, c=[], d=0)
    options.exclude(arguments, "abc", "--other")
    with pytest.raises(InputError, match="--d cannot be used with --other"):
        options.exclude(arguments, "abcd", "--other")


def test_the_same_policy_under_two_texts_is_refused() -> None:
    names = ["set-10", "fcfs"]
    policies = options.distinct("policy", get_policy, names)
    assert [policy.label for policy in policies] == names
    with pytest.raises(InputError, match="policy 'set-10:period=learnt' is given twi"):
        options.distinct("policy", get_policy, [*names, "set-10:period=learnt"])


def test_one_job_needs_no_pool() -> None:
    assert isinstance(options.executor_from(Namespace(dask=None, jobs=1)), Inline)
    assert options.executor_from(Namespace(dask=None, jobs=3)) == LocalPool(3)


def test_figures_are_drawn_in_three_formats() -> None:
    options.check_drawable(None, "a.svg", "b.PNG", "c.d.pdf")
    with pytest.raises(InputError, match=r"a\.gif: cannot draw a 'gif' file"):
        options.check_drawable("b.svg", "a.gif")


def test_json_goes_to_a_file_or_to_standard_output(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    document = {"penstock": 1, "name": "\udcfe"}
    options.write_json(document, str(tmp_path / "a.json"))
    options.write_json(document, "-")
    written = (tmp_path / "a.json").read_bytes()
    assert json.loads(written) == {"penstock": 1, "name": "\\xfe"}
    assert capfdbinary.readouterr().out == written
