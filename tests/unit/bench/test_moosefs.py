# SPDX-License-Identifier: MIT
"""A MooseFS cluster: what it needs, its links, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Timer
from threading import enumerate as enumerate_threads

import pytest

from penstock.bench import moosefs
from penstock.bench.moosefs import (
    FOLDER,
    ClusterSpec,
    check_requirements,
    client_mount,
    cluster_command,
    cluster_environment,
    label_of,
    node_address,
    node_command,
    run_module,
)
from penstock.errors import InputError
from support.namespaces import are_gone, processes_in
from support.waiting import LIMIT_S, until

FOUR_SERVERS = ClusterSpec()


def test_missing_programs_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "dd").write_text("#!/bin/sh\n")
    (tmp_path / "dd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(moosefs, "_PATH", "")
    with pytest.raises(
        InputError, match=r"not installed: mfsmaster, .*, tc \("
    ) as error:
        check_requirements()
    assert "apt install moosefs-master" in str(error.value)


def test_a_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moosefs, "_TOOLS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r"needs root.*sudo"):
        check_requirements()


def test_the_command_names_sizes_rates_and_options() -> None:
    spec = ClusterSpec(3, 2, 1.5e6, inf, "ro")
    words = cluster_command(spec, ["true", "x"])
    facts = words[words.index("bash") + 2 :]
    assert facts == [
        str(os.getpid()),
        str(FOLDER),
        "3",
        "12000000",
        "2",
        "0",
        "ro",
        "true",
        "x",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"servers": 0}, "a cluster cannot have 0 servers (give 1 to 26)"),
        ({"servers": 27}, "a cluster cannot have 27 servers (give 1 to 26)"),
        ({"clients": 100}, "a cluster cannot have 100 clients (give 1 to 99)"),
        ({"server_bytes_per_s": 0.0}, "0.0 bytes/s are not the rate of a link"),
        ({"client_bytes_per_s": float("nan")}, "nan bytes/s are not the rate"),
    ],
)
def test_an_impossible_cluster_is_refused(
    fields: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError) as error:
        ClusterSpec(**fields)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_nodes_have_labels_addresses_and_folders() -> None:
    assert [label_of(1), label_of(4)] == ["A", "D"]
    assert node_address(2) == "192.0.2.102"
    assert client_mount(2) == FOLDER / "client2" / "mnt"
    assert node_command(2, ["a", "b"])[1:] == [
        f"--net={FOLDER}/client2/net",
        *("--", "a", "b"),
    ]


@contextmanager
def started_cluster(
    script: str, spec: ClusterSpec = FOUR_SERVERS, before: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Run a script beside a cluster; skip where that is not possible.

    The first line of its output names the namespace of its processes.
    """
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    script = f"readlink /proc/self/ns/pid; {script}"
    process = subprocess.Popen(
        [*before, *cluster_command(spec, ["bash", "-c", script])],
        env=cluster_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def test_every_client_node_sees_the_files_and_folders_choose_servers() -> None:
    script = """
    head -c 300000 /dev/zero >client1/mnt/B/f && sync client1/mnt/B/f
    stat -c %s client2/mnt/B/f
    find server*/data -name 'chunk_*' -size +200k | cut -d / -f 1
    nsenter --net=server2/net tc class show dev ifb0 | grep -c 'ceil 40Mbit'
    """
    spec = ClusterSpec(servers=2, clients=2, server_bytes_per_s=5e6)
    with started_cluster(script, spec) as process:
        output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert output.splitlines()[1:] == ["300000", "server2", "3"]
    assert not (FOLDER / "client1").exists()
    assert not os.path.ismount(client_mount())


def test_requests_to_one_server_never_wait_for_another_one() -> None:
    """An mfsmount serves ten requests at a time; 20 are stuck at server A."""
    script = """
    nsenter --net=server1/net ip link set eth0 down
    for number in $(seq 20); do
        dd if=/dev/zero of=client1/mnt/A/$number bs=64k count=1 conv=fsync &
    done 2>/dev/null
    until [ "$(ls client2/mnt/A | wc -l)" -ge 10 ]; do sleep 0.1; done
    sleep 2
    timeout 60 dd if=/dev/zero of=client1/mnt/B/x bs=64k count=1 conv=fsync 2>/dev/null
    echo $?
    """
    with started_cluster(script, ClusterSpec(servers=2, clients=2)) as process:
        output, _ = process.communicate(timeout=LIMIT_S)
    assert output.splitlines()[1:] == ["0"]


def test_what_fails_is_said_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tc").write_text("#!/bin/sh\necho no tc >&2; exit 2\n")
    (tmp_path / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    spec = ClusterSpec(servers=1, server_bytes_per_s=5e6)
    with started_cluster("true", spec) as process:
        output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    *_, before, last = output.splitlines()
    assert before == "no tc"
    assert last.startswith("cannot limit links (the kernel needs ifb, ")


def processes_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """Return the processes of a started cluster."""
    assert process.stdout is not None
    found = processes_in(process.stdout.readline().strip())
    # The shell, the master, four chunk servers, the mount.
    assert len(found) > 6
    return found


def test_nothing_is_left_if_it_is_killed() -> None:
    with started_cluster("sleep 600") as process:
        processes = processes_of(process)
    until(lambda: are_gone(processes))
    assert not os.path.ismount(client_mount())


#: Starts a cluster as its parent; the first argument is the parent in the command.
_STARTS_CLUSTER = """
import os, subprocess, sys
parent, *words = sys.argv[1:]
subprocess.call([str(os.getpid()) if word == parent else word for word in words])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_if_the_starting_process_is_killed(number: int) -> None:
    """The program in between has no time to end the cluster itself."""
    before = [sys.executable, "-c", _STARTS_CLUSTER, str(os.getpid())]
    with started_cluster("sleep 600", before=before) as process:
        processes = processes_of(process)
        process.send_signal(number)
        until(lambda: are_gone(processes))
    assert not os.path.ismount(client_mount())


def test_nothing_is_started_if_the_starting_process_has_ended() -> None:
    """It may end before the kernel is told to end the cluster with it."""
    own = str(os.getpid())
    words = cluster_command(FOUR_SERVERS, ["true"])
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    with subprocess.Popen(["sleep", "600"]) as other:
        words = [str(other.pid) if word == own else word for word in words]
        done = subprocess.run(words, capture_output=True, check=False, timeout=LIMIT_S)
        other.kill()
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_nothing_is_started_if_the_process_in_between_has_ended(
    tmp_path: Path,
) -> None:
    """It is a zombie, or has gone altogether."""
    script = Path(moosefs.__file__).with_name("moosefs.sh")
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    state = os.open(f"/proc/{ended.pid}", os.O_RDONLY)
    words = [
        "bash",
        "-c",
        f'exec 8<&{state} 9>/dev/null && exec "$@"',
        "",
        "bash",
        str(script),
    ]
    words += [str(tmp_path / "nowhere"), "1", "0", "1", "0", "rw", "true"]
    for _ in range(2):
        done = subprocess.run(
            words,
            pass_fds=[state],
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
        ended.wait()
    os.close(state)


#: Mounts a file system that answers the first request only, and looks at its root.
_WAITS_FOR_ITSELF = """
import ctypes, os, struct, sys, threading
device, point = os.open("/dev/fuse", os.O_RDWR), sys.argv[1]
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
assert ctypes.CDLL(None).mount(b"self", point.encode(), b"fuse", 0, options) == 0
request = os.read(device, 1 << 20)
answer = struct.pack("=4I", 7, 31, 0, 0).ljust(64, b"\\0")
number = struct.unpack_from("=Q", request, 8)
os.write(device, struct.pack("=IiQ", 16 + len(answer), 0, *number) + answer)
threading.Thread(target=os.stat, args=(point,)).start()
os.read(device, 1 << 20)
print("waits", flush=True)
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_mount_that_waits_for_itself_does_not_keep_the_cluster(
    tmp_path: Path, is_killed: bool
) -> None:
    """As mfsmount does if it is killed while it looks at files in its own mount."""
    program = tmp_path / "mount.py"
    program.write_text(_WAITS_FOR_ITSELF)
    script = f"""
    mkdir client1/mnt-self
    coproc {sys.executable} {program} client1/mnt-self
    read -r line <&${{COPROC[0]}}
    echo $line
    """ + ("sleep 600" if is_killed else "")
    with started_cluster(script) as process:
        processes = processes_of(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        if is_killed:
            process.kill()
        until(lambda: are_gone(processes))


def test_no_thread_stays_if_ctrl_c_comes_while_a_limit_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(Timer):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(moosefs, "Timer", Interrupted)
    command = ["cat"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        with pytest.raises(KeyboardInterrupt):
            next(moosefs._lines_of(process))
        process.kill()
    until(
        lambda: not any(isinstance(each, Interrupted) for each in enumerate_threads())
    )


def test_lines_of_a_module_are_yielded_and_its_failure_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a cluster: the module runs alone."""
    monkeypatch.setattr(moosefs, "cluster_command", lambda _, command: list(command))
    lines = run_module(ClusterSpec(), "json.tool", ["--compact", "/dev/null"])
    with pytest.raises(InputError, match="failed: Expecting value"):
        list(lines)


def test_a_silent_module_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(moosefs, "cluster_command", lambda _, __: sleeper)
    monkeypatch.setattr(moosefs, "SILENT_S", 0.2)
    with pytest.raises(InputError, match=r"silent for 0\.2 s"):
        list(run_module(ClusterSpec(), "any", []))


def test_a_command_is_run_in_the_folder_of_a_client_node() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock.bench.moosefs", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    for words in ((), ("--help",)):
        empty = run(*words)
        assert (empty.returncode, empty.stdout) == (2, "")
        assert empty.stderr.startswith("penstock: there is no command to run (")
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    done = run("sh", "-c", "pwd; echo $PENSTOCK_FOLDER; exit 3")
    assert done.returncode == 3
    assert done.stdout.splitlines() == [str(client_mount()), f"{FOLDER}/penstock"]
