# SPDX-License-Identifier: MIT
"""Settings: defaults, file, environment and flags; and mistakes in each."""

from __future__ import annotations

import re
from dataclasses import fields
from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live import settings as settings_module
from penstock.live.settings import (
    LEARN,
    Settings,
    load_settings,
    misspelt_variables,
    settings_table,
)
from penstock.native.files import SOURCES

ROOT = Path(__file__).parents[3]


def settings_file(folder: Path, text: str) -> str:
    """Write a file of settings."""
    path = folder / "penstock.toml"
    path.write_text(text)
    return str(path)


def test_the_defaults() -> None:
    settings = load_settings({}, {}, "/dev/null")
    assert settings == Settings()
    assert settings.policy == "fair-share"
    assert settings.bandwidth == LEARN
    assert settings.floor == inf
    assert settings.prefixes == ()
    assert settings.gap == 0.05
    assert settings.lend is True


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    path = settings_file(
        tmp_path, 'policy = "fcfs"\nbandwidth = "2 GB/s"\nlease = "5 s"\nlend = false\n'
    )
    environment = {"PENSTOCK_LEASE": "6 s", "PENSTOCK_BANDWIDTH": "3 GB/s"}
    settings = load_settings({"bandwidth": "4 GB/s", "gap": None}, environment, path)
    assert (settings.policy, settings.bandwidth) == ("fcfs", 4e9)
    assert (settings.lease, settings.lend) == (6.0, False)


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    path = settings_file(tmp_path, 'prefixes = ["/scratch", "/work"]')
    settings = load_settings({}, {"PENSTOCK_SETTINGS": path})
    assert settings.prefixes == ("/scratch", "/work")


def test_the_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "penstock").mkdir()
    settings_file(tmp_path / "penstock", 'node = "here"')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_settings({}, {}).node == "here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policcy = 'x'", "policcy: unknown setting 'policcy' .*did you mean 'policy'"),
        ("lease = '1 h'", r"lease: '1 h' is out of range \(give 0.2 to 60 seconds\)"),
        ("lease = '3 parsecs'", "lease: unknown unit 'parsecs'"),
        ("lease = '3'", "lease: '3' has no unit"),
        ("bandwidth = '10'", "bandwidth: '10' has no unit .write e.g. \"10 MB/s\""),
        ("bandwidth = 20", "bandwidth: '20' has no unit .write e.g. \"20 MB/s\""),
        ("floor = 2e6", "floor: '2000000.0' has no unit"),
        ("lease = 3", "lease: '3' has no unit .write e.g. \"3 s\""),
        ("bandwidth = 0", "bandwidth: 0 is not a positive bandwidth"),
        ("bandwidth = 'fast'", "bandwidth: 'fast' is not a bandwidth .*, or learn or"),
        ("bandwidth = 'lern'", "bandwidth: 'lern' .*did you mean learn[?]"),
        ("floor = 'unlimted'", "floor: .*did you mean unlimited[?]"),
        ("bandwidth = '20 mb/s'", "did you mean MB/s[?]"),
        ("metrics = 'foo:bar'", "metrics: 'foo:bar' is not an address .write HOST"),
        ("metrics = '9400'", "metrics: '9400' is not an address"),
        ("metrics = 'here:99999'", "metrics: 'here:99999' is not an address"),
        ("web = '9480'", "web: '9480' is not an address .write HOST"),
        ("[serve]\npolicy = 'x'", r"\[serve\]: this file has no sections .remove"),
        ("node-bandwidth = '1 B/s'", "did you mean 'node_bandwidth'"),
        ("mode = 'sometimes'", "mode: unknown value 'sometimes' .*control, dry-run"),
        ("lend = 'perhaps'", "lend: 'perhaps' is not yes or no"),
        ("prefixes = ['scratch']", "prefixes: 'scratch' is not an absolute path"),
        ("priorities = 'urgent'", "priorities: 'urgent' is not a list of priorities"),
        ("priorities = 'a=1,'", "priorities: 'a=1,' is not a list of priorities"),
        ("prefixes = [1]", r"prefixes: \[1\] is not a list of folders"),
        ("policy = 1", "policy: 1 is not a text"),
        ("policy = ", "is not TOML"),
        ("\xff", "is not TOML"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message) as caught:
        load_settings({}, {}, str(path))
    assert str(caught.value).startswith(str(path))


def test_mistakes_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^PENSTOCK_GAP: 'x' is not a time"):
        load_settings({}, {"PENSTOCK_GAP": "x"}, "/dev/null")
    with pytest.raises(InputError, match=r"^--node-bandwidth: 'x' is not a bandwidth"):
        load_settings({"node_bandwidth": "x"}, {}, "/dev/null")
    with pytest.raises(InputError, match=r"^/no/such/file: cannot be read"):
        load_settings({}, {}, "/no/such/file")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_settings({}, {}, str(tmp_path))


def test_only_a_nought_needs_no_unit(tmp_path: Path) -> None:
    path = settings_file(tmp_path, "linger = 0\n")
    assert load_settings({}, {}, path).linger == 0.0
    assert load_settings({"linger": "0"}, {}, path).linger == 0.0
    with pytest.raises(InputError, match=r"^PENSTOCK_GAP: '50' has no unit"):
        load_settings({}, {"PENSTOCK_GAP": "50"}, path)


def test_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(folder="/here").socket == Path("/here/agent.sock")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert Settings().home == Path("/run/penstock")
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1234")
    assert Settings().home == Path("/run/user/1234/penstock")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert Settings().home == Path("/tmp/penstock-1234")  # noqa: S108


def test_the_folder_of_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(archive="none").archive_folder is None
    assert Settings(archive="/a", folder="/b").archive_folder == Path("/a")
    assert Settings(folder="/b").archive_folder == Path("/b/archive")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert Settings().archive_folder == Path("/var/lib/penstock")
    assert Settings(folder="/run/penstock").archive_folder == Path("/var/lib/penstock")
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert Settings().archive_folder == Path("/state/penstock")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert Settings().archive_folder == Path("/home/ann/.local/state/penstock")


def test_bandwidths_of_targets_are_rates(tmp_path: Path) -> None:
    path = settings_file(tmp_path, 'target_bandwidths = "1 GB/s, 1.5 GB/s"')
    settings = load_settings({}, {"PENSTOCK_SETTINGS": path})
    assert settings.target_bandwidths == (1e9, 1.5e9)


def test_priorities_are_pairs(tmp_path: Path) -> None:
    path = settings_file(tmp_path, 'priorities = "urgent=10, very low = -0.5"')
    settings = load_settings({}, {"PENSTOCK_SETTINGS": path})
    assert settings.priorities == (("urgent", 10.0), ("very low", -0.5))


def test_every_setting_is_in_the_table_and_in_the_documentation() -> None:
    table = settings_table()
    assert [row[0] for row in table] == [item.name for item in fields(Settings)]
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    for name, default, meaning, _ in table:
        shown = f"`{default}`" if default else ""
        assert f"| `{name}` | {shown} | {meaning} |" in page


def test_no_variable_means_something_else_to_the_preload_library() -> None:
    """Programs are given the library's variables, and may start a daemon with them."""
    code = "".join(path.read_text() for path in SOURCES.glob("*/*.c"))
    read = set(re.findall(r'"PENSTOCK_([A-Z_]+)"', code))
    assert {"PAGE", "CONTROLLED", "STAGING", "STAGING_SIZE"} <= read
    assert not read & {name.upper() for name, *_ in settings_table()}


# --- Misspelt variables ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("PENSTOCK_BANDWITH", "PENSTOCK_BANDWIDTH"),
        ("PENSTOCK_POLCY", "PENSTOCK_POLICY"),
        ("PENSTOCK_PREFIX", "PENSTOCK_PREFIXES"),
        ("PENSTOCK_STAGING_SIZES", "PENSTOCK_STAGING_SIZE"),
        ("penstock_gap", "PENSTOCK_GAP"),
    ],
)
def test_a_variable_that_is_nearly_a_known_one_is_misspelt(
    name: str, near: str
) -> None:
    assert misspelt_variables({name: "1", near: "2", "PATH": "/bin"}) == {name: near}


def test_variables_of_others_are_not_misspelt() -> None:
    names = ("ROOT", "HOME", "DIR", "VERSION", "BASE", "LIB", "CRASH_SEED", "")
    environment = {f"PENSTOCK_{name}": "x" for name in names}
    assert misspelt_variables({**environment, "BANDWITH": "1"}) == {}


def test_every_variable_that_penstock_reads_is_known() -> None:
    package = SOURCES.parent
    files = [*package.rglob("*.py"), *package.rglob("*.c")]
    text = "".join(path.read_text() for path in files)
    names = set(re.findall(r'"(PENSTOCK_[A-Z_]*[A-Z])"', text))
    assert len(names) > 10
    assert misspelt_variables(dict.fromkeys(names, "")) == {}
    known = {f"PENSTOCK_{name.upper()}" for name, *_ in settings_table()}
    others = {f"PENSTOCK_{name}" for name in settings_module._OTHER_VARIABLES}
    assert names <= known | others
