# SPDX-License-Identifier: MIT
"""The object that places jobs is made from the settings and what was measured."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.live.daemon import server
from penstock.live.daemon.placement import job_placer
from penstock.live.settings import Settings, load_settings
from penstock.live.staging.kept_profiles import keep_profile
from penstock.sim.forecast import BufferForecast

NAMES = ("A", "B", "C", "D")
TARGETS = "moosefs:/mnt/mfs:A,B,C,D"


def _settings(tmp_path: Path, **values: str) -> Settings:
    flags = {
        "folder": str(tmp_path),
        "targets": TARGETS,
        "placement": "t-cpu+greedy-non-clairvoyant",
        **values,
    }
    return load_settings(flags, {}, "/dev/null")


def _profiles(settings: Settings) -> dict[str, tuple[float, ...]]:
    placer = job_placer(settings, NAMES)
    return {pattern: tuple(profile) for pattern, profile in placer._profiles}


def test_the_setting_comes_before_what_was_measured(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    assert _profiles(settings) == {"*": ()}
    keep_profile(settings.profiles_file, TARGETS, [1.0, 2.0, 3.0, 4.0])
    assert _profiles(settings) == {"*": (1.0, 2.0, 3.0, 4.0)}
    given = _settings(tmp_path, target_bandwidths="5 B/s,6 B/s")
    assert _profiles(given) == {"*": (5.0, 6.0)}


def test_a_damaged_file_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = _settings(tmp_path)
    settings.profiles_file.write_text("{")
    with caplog.at_level(logging.WARNING):
        assert _profiles(settings) == {"*": ()}
    assert "measure again with `penstock profile`" in caplog.text


def test_jobs_of_a_class_have_its_curve_from_their_first_value(tmp_path: Path) -> None:
    settings = _settings(
        tmp_path, target_bandwidths="10 B/s", job_classes="up*=ascent,down=descent"
    )
    profiles = _profiles(settings)
    assert list(profiles) == ["up*", "down", "*"]
    assert profiles["up*"][0] == profiles["down"][0] == pytest.approx(10.0)
    assert len(profiles["up*"]) == len(NAMES)
    assert list(profiles["up*"]) == sorted(profiles["up*"])
    assert list(profiles["down"]) == sorted(profiles["down"], reverse=True)


def test_a_class_needs_the_bandwidth_on_one_target(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="penstock profile"):
        _profiles(_settings(tmp_path, job_classes="a=peak"))


def test_two_algorithms_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not name an allocation and a placement"):
        job_placer(_settings(tmp_path, placement="t-cpu"), NAMES)
    with pytest.raises(UnknownNameError, match="t-cpu"):
        job_placer(_settings(tmp_path, placement="t-cpus+random"), NAMES)
    with pytest.raises(InputError, match="places all applications at once"):
        job_placer(_settings(tmp_path, placement="t-cpu+exclusive"), NAMES)


def test_the_forecasts_of_auto_know_what_was_measured(tmp_path: Path) -> None:
    settings = _settings(tmp_path, strategy="auto")
    keep_profile(settings.profiles_file, TARGETS, [1.0, 2.0, 3.0, 4.0])
    stager = server._stager(settings, NAMES)
    assert stager is not None
    assert stager._forecast is not None
    forecast = cast("BufferForecast", stager._forecast(4.0))
    assert forecast.storage.profile == (1.0, 2.0, 3.0, 4.0)
