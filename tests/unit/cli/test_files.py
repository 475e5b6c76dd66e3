# SPDX-License-Identifier: MIT
"""File names on the command line are checked before any work."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.files import (
    InputFile,
    OutputFile,
    Word,
    check_names,
    filled_folder,
    make_folder,
)
from penstock.errors import InputError

THREE = Path(__file__).parents[3] / "examples" / "three.json"

#: Command -> part of the message.
REFUSED = {
    "compare three.json --json three.json": "three.json: this command already reads",
    "compare three.json --plot ../here/three.json": "json: this command already reads",
    "compare three.json --plot x.svg --json x.svg": "x.svg: this command already",
    "compare three.json --plot x.svg --timeline ./x.svg": "svg: this command already",
    "compare three.json --json link.json": "link.json: this command already reads",
    "compare --problem three.json --json three.json": "already reads",
    "place three.json --json three.json": "already reads",
    "replay three.json d --json three.json": "this command already reads",
    "compare ''": "an instance file: the value is empty",
    "place ''": "PROBLEM: the value is empty",
    "check ''": "PROGRAM: the value is empty",
    "replay '' d": "TRACE: the value is empty",
    "drain ''": "--folder: the value is empty",
    "compare --json ''": "--json: the value is empty",
    "compare --workload ''": "--workload: the value is empty",
    "study '' -o out": "FILE: the value is empty",
    "study three.json -o ''": "--output: the value is empty",
    "study three.json --dask ''": "--dask: the value is empty",
    "study three.json -o \udcfe": "is not valid UTF-8",
    "reproduce p4-fig5 -o \udcfe": "is not valid UTF-8",
    "bench delta --output three.json": "three.json: cannot make the folder: File",
    "bench slo --output /proc/x": "/proc/x: cannot make the folder: No such file",
    "reproduce p4-fig5 --live -o three.json": "live: cannot make the folder: Not",
    "reproduce p4-fig5 nonsense all": "unknown figure 'nonsense'",
    "reproduce --list p4-fig5": "--list takes no figure",
    "generate help --set a=1": "--set cannot be used with help",
    "advise three.json --settings ''": "--settings: the value is empty",
    "ctl policy fcfs --json .": ".: this is a folder",
    "ctl slo mnt viz 1 1 --json .": ".: this is a folder",
    "mount --set-limit 1 mnt --json .": ".: this is a folder",
    "ctl status --json no/such/x.json": "x.json: there is no folder no/such (make it",
    "compare three.json --plot plots/x.svg": "plots/x.svg: there is no folder plots",
    "mount --status mnt --json three.json/x/y": "three.json/x/y: cannot write to",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_bad_name_is_refused_in_one_line_and_nothing_is_written(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(THREE, here / "three.json")
    (here / "link.json").symlink_to("three.json")
    monkeypatch.chdir(here)
    words = ["" if word == "''" else word for word in command.split()]
    assert main(words) == 2
    printed = capfd.readouterr()
    assert REFUSED[command] in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert sorted(path.name for path in here.iterdir()) == ["link.json", "three.json"]
    assert (here / "three.json").read_bytes() == THREE.read_bytes()


def test_devices_may_be_named_twice() -> None:
    names = Namespace(json=OutputFile("/dev/null"), plot=OutputFile("/dev/null"), n=3)
    check_names(names)
    assert type(names.json) is str
    check_names(Namespace(a=OutputFile("-"), b=OutputFile("-"), c=InputFile("-")))


def test_a_folder_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="cannot write to"):
        make_folder(tmp_path)
    with pytest.raises(InputError, match="cannot write to"):
        check_names(Namespace(json=OutputFile(str(tmp_path / "x"))))


def test_other_arguments_are_not_checked() -> None:
    check_names(Namespace(setting_listen="", job="", command=["", "x"], w=Word("a")))


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_a_new_folder_without_results_is_removed(
    tmp_path: Path, existed: bool, written: bool
) -> None:
    place = tmp_path / "out"
    if existed:
        place.mkdir()

    def fill() -> None:
        with filled_folder(place) as folder:
            if written:
                (folder / "one").touch()
            raise InputError("disk full")

    with pytest.raises(InputError):
        fill()
    assert place.exists() is (existed or written)
