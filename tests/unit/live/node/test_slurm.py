# SPDX-License-Identifier: MIT
"""The scripts for Slurm, run without Slurm: their output, and that they never fail."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.node import slurm
from penstock.live.node.slurm import SCRIPTS, make_scripts, register
from penstock.live.wire.frames import frame
from penstock.live.wire.messages import (
    FROM_PROGRAM,
    GetStatus,
    Message,
    PageAssigned,
    Refused,
    RegisterJob,
)

JOB = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_UID": "1001",
    "SLURM_JOB_GID": "100",
    "SLURM_JOB_ACCOUNT": "physics",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_JOB_WORK_DIR": "/home/user",
    "SLURMD_NODENAME": "n1",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder of an agent, whose name needs quoting in a shell."""
    folder = tmp_path / "the agent's" / "n1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def scripts(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the scripts and a file in place of the library."""
    (tmp_path / "library").write_bytes(b"library")
    monkeypatch.setattr(slurm, "shim_path", lambda: tmp_path / "library")
    make_scripts(tmp_path / "site scripts", home.parent / "%n")
    return tmp_path / "site scripts"


def run(script: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as slurmd does."""
    return subprocess.run(
        [script],
        env={**JOB, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@contextmanager
def agent(home: Path, reply: Message) -> Iterator[list[object]]:
    """Answer one message as an agent would; yield the messages received."""
    received: list[object] = []
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / "agent.sock"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                size = int.from_bytes(connection.recv(4), "big")
                received.append(FROM_PROGRAM(connection.recv(size)))
                connection.sendall(frame(reply))

        thread = threading.Thread(target=answer)
        thread.start()
        yield received
        thread.join(20.0)


def test_all_scripts_and_the_library_are_written(scripts: Path) -> None:
    assert {path.name for path in scripts.iterdir()} == {*SCRIPTS, "libpenstock.so"}
    for path in scripts.iterdir():
        assert path.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="other users can write to this folder"):
        make_scripts(tmp_path, tmp_path)


def test_a_job_is_registered_and_its_tasks_get_the_variables(
    scripts: Path, home: Path
) -> None:
    with agent(
        home, PageAssigned(str(home / "a b.page"), ["/scratch", "/lab"])
    ) as received:
        register(home, JOB)
    assert received == [RegisterJob("17", 1001, 100, "physics", 4, "/home/user")]
    note = home / "slurm" / "17"
    assert note.stat().st_mode & 0o777 == 0o644
    assert note.parent.stat().st_mode & 0o777 == 0o711
    done = run(scripts / "task-prolog", LD_PRELOAD="/lib/other.so:x.so")
    assert done.stdout.splitlines() == [
        f"export LD_PRELOAD={scripts}/libpenstock.so:/lib/other.so:x.so",
        f"export PENSTOCK_PAGE={home}/a b.page",
        "export PENSTOCK_CONTROLLED=/scratch:/lab",
    ]
    again = run(scripts / "task-prolog", LD_PRELOAD=f"x.so {scripts}/libpenstock.so")
    assert again.stdout.splitlines()[0] == (
        f"export LD_PRELOAD=x.so {scripts}/libpenstock.so"
    )
    (home / "a b.page").touch()
    (home / "a b.note").touch()
    done = run(scripts / "epilog")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in home.rglob("*")] == ["slurm", "agent.sock"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("lost", ["job", "agent", "folder"])
def test_no_script_fails_or_prints(
    scripts: Path, home: Path, script: str, lost: str
) -> None:
    environment = {"SLURM_JOB_ID": "../17" if lost == "job" else "17"}
    if lost == "folder":
        home.rmdir()
    done = run(scripts / script, **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if script == "prolog" and lost == "agent":
        log = (home / "slurm.log").read_text()
        assert "job 17 runs without control: " in log
        assert log.count("\n") == 1


def test_without_the_library_tasks_get_no_variables(scripts: Path, home: Path) -> None:
    (home / "slurm").mkdir()
    (home / "slurm" / "17").write_text("/page\n/\n")
    assert run(scripts / "task-prolog").stdout
    (scripts / "libpenstock.so").unlink()
    done = run(scripts / "task-prolog")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("variables", "qos"),
    [
        ({"SLURM_JOB_QOS": "urgent", "SLURM_JOB_PARTITION": "batch"}, "urgent"),
        ({"SLURM_JOB_PARTITION": "batch"}, "batch"),
        ({}, ""),
    ],
)
def test_the_agent_is_told_the_qos_or_the_partition(
    home: Path, variables: dict[str, str], qos: str
) -> None:
    with agent(home, PageAssigned("/page", [])) as received:
        register(home, JOB | variables)
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert message.qos == qos


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"climate run", "climate run"),
        ("Läufe".encode(), "Läufe"),
        ("Läufe".encode("latin-1"), "L\ufffdufe"),
        (b"x" * 5000, "x" * 200),
    ],
)
@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("SLURM_JOB_NAME", "history_name"),
        ("SLURM_JOB_ACCOUNT", "account"),
        ("SLURM_JOB_QOS", "qos"),
    ],
)
def test_no_name_keeps_a_job_from_being_registered(
    home: Path, given: bytes, told: str, variable: str, field: str
) -> None:
    with agent(home, PageAssigned("/page", [])) as received:
        register(home, JOB | {variable: os.fsdecode(given)})
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert getattr(message, field) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"/home/me/x", "/home/me/x"),
        ("/home/Läufe".encode(), "/home/Läufe"),
        (b"/home/me/\xffx/y", "/home/me"),
        (b"/\xff", "/"),
        (b"/home/\xff/me/\xff", "/home"),
    ],
)
def test_no_folder_keeps_a_job_from_being_registered(
    home: Path, caplog: pytest.LogCaptureFixture, given: bytes, told: str
) -> None:
    with agent(home, PageAssigned("/page", [])) as received:
        register(home, JOB | {"SLURM_JOB_WORK_DIR": os.fsdecode(given)})
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert message.folder == told
    is_changed = os.fsencode(told) != given
    assert len(caplog.messages) == is_changed
    assert all(f"{told!r} is controlled instead" in line for line in caplog.messages)


def test_a_link_to_a_folder_that_is_not_utf8_stops_no_job(
    home: Path, tmp_path: Path
) -> None:
    """Otherwise the agent would keep the job for ever: the epilog finds no answer."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    with agent(home, PageAssigned("/page", [str(tmp_path / "link")])):
        register(home, JOB)
    page, controlled = (home / "slurm" / "17").read_bytes().splitlines()
    assert page == b"/page"
    assert controlled == os.fsencode(folder)


def test_a_folder_that_does_not_answer_keeps_no_job_registered(
    scripts: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prolog is killed while it follows a link: the epilog ends the job."""
    page = home / "a.page"
    page.touch()

    def is_killed(*_: object, **__: object) -> str:
        raise InterruptedError

    with (
        agent(home, PageAssigned(str(page), ["/scratch"])),
        monkeypatch.context() as patched,
    ):
        patched.setattr(os.path, "realpath", is_killed)
        with pytest.raises(InterruptedError):
            register(home, JOB)
    assert run(scripts / "task-prolog").stdout == ""
    run(scripts / "epilog")
    assert not page.exists()


def test_a_folder_that_is_a_loop_of_links_stops_no_job(home: Path) -> None:
    (home / "loop").symlink_to("loop")
    with agent(home, PageAssigned("/page", [str(home / "loop")])):
        register(home, JOB)
    assert (home / "slurm" / "17").read_text() == f"/page\n{home}/loop\n"


@pytest.mark.parametrize(
    ("nodes", "node", "name"),
    [
        ("n7", "n7", "climate run"),
        ("n[07-9,12],m1", "n07", "climate run"),
        ("n[07-9,12],m1", "n12", ""),
        ("n1,m[2-3]", "m2", ""),
        ("rack[1-2]n[01-04]", "rack1n01", "climate run"),
        ("rack[1-2]n[01-04]", "rack1n02", ""),
        ("rack[1-2]n[01-04]", "rack2n01", ""),
        ("n[1-4]-ib,m[1-2]", "n1-ib", "climate run"),
        ("n[1-4,7]-ib,m[1-2]", "n7-ib", ""),
        ("login-1,n[1-4]", "login-1", "climate run"),
        ("", "", ""),
    ],
)
def test_slurm_is_asked_for_the_name_on_the_first_node(
    home: Path, monkeypatch: pytest.MonkeyPatch, nodes: str, node: str, name: str
) -> None:
    tool = home / "squeue"
    tool.write_text(
        '#!/bin/sh\n[ "$2" = --jobs=7 ] && printf "climate run\\nclimate run\\n"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/bin:/usr/bin")
    variables = {"SLURM_NODELIST": nodes, "SLURMD_NODENAME": node, "SLURM_JOB_ID": "7"}
    with agent(home, PageAssigned("/page", [])) as received:
        register(home, JOB | variables)
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert message.history_name == name


@pytest.mark.parametrize("text", ["sleep 9", "exit 1", "echo; exit 0"])
def test_a_slurm_that_does_not_tell_the_name_stops_no_job(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(slurm, "_NAME_S", 0.2)
    (home / "squeue").write_text(f"#!/bin/sh\n{text}\n")
    (home / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/bin:/usr/bin")
    with agent(home, PageAssigned("/page", [])) as received:
        register(home, JOB | {"SLURM_NODELIST": "n1", "SLURMD_NODENAME": "n1"})
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert message.history_name == ""


def test_the_scripts_find_the_commands_of_slurm_in_a_folder_of_their_own(
    home: Path, scripts: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """slurmd gives its scripts no PATH."""
    tools = tmp_path / "opt" / "slurm's bin"
    tools.mkdir(parents=True)
    for name in ("squeue", "scontrol"):
        (tools / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/'{name}\necho name\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    make_scripts(scripts, home.parent / "%n")
    with agent(home, PageAssigned("/page", [])) as received:
        run(scripts / "prolog", SLURM_NODELIST="n1")
    (message,) = received
    assert isinstance(message, RegisterJob)
    assert message.history_name == "name"
    run(scripts / "epilog-comment", SLURM_NODELIST="n[1-2]")
    assert (tmp_path / "scontrol").exists()


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID"])
@pytest.mark.parametrize("value", ["", "x", "-1", "1/2", "²"])
def test_invalid_variables_of_slurmd_are_refused(
    home: Path, name: str, value: str
) -> None:
    with pytest.raises(InputError, match=f"{name} is '{value}', not a number"):
        register(home, {**JOB, name: value})


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [(Refused("no room"), "no room"), (GetStatus(), "not a message")],
)
def test_an_agent_that_gives_no_page(
    home: Path, reply: Message, complaint: str
) -> None:
    with agent(home, reply), pytest.raises(InputError, match=complaint):
        register(home, JOB)
    assert not (home / "slurm").exists()


def test_an_agent_that_does_not_answer_is_not_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "ANSWER_S", 0.05)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / "agent.sock"))
        listener.listen()
        with pytest.raises(UnavailableError, match="timed out"):
            register(home, JOB)


def test_the_prolog_logs_and_succeeds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {})
    assert slurm.main([str(home)]) == 0
    assert "job ? runs without control: SLURM_JOB_ID is ''" in (
        (home / "slurm.log").read_text()
    )


@pytest.mark.parametrize("script", ["epilog", "epilog-comment", "task-prolog"])
@pytest.mark.parametrize("job_id", ["../lock", "1/../../lock", "17x", " ", ""])
def test_a_job_id_that_is_no_number_is_no_path(
    scripts: Path, home: Path, script: str, job_id: str
) -> None:
    (home / "slurm").mkdir()
    page = home / "other.page"
    page.write_text("page")
    (home / "lock").write_text(f"{page}\n/data\n")
    done = run(scripts / script, **JOB | {"SLURM_JOB_ID": job_id})
    assert (done.returncode, done.stdout) == (0, "")
    assert (home / "lock").exists()
    assert page.exists()
