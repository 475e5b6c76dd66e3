# SPDX-License-Identifier: MIT
"""Partitions on a real MooseFS: a master and three chunkservers, labels A, B and C."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.bench.moosefs import (
    ClusterSpec,
    check_requirements,
    cluster_command,
    cluster_environment,
    node_command,
)
from penstock.errors import InputError

_SCRIPT = r"""
import os
import pwd
import subprocess
import threading
from pathlib import Path
from penstock.errors import InputError
from penstock.live.staging.assigner import FolderAssigner, FolderOrder, assign_as
from penstock.live.staging.drivers import get_driver
from penstock.mount.striping import targets_of

root = Path("client1/mnt").resolve()
driver = get_driver("moosefs", root)
servers = {"192.0.2.11": "A", "192.0.2.12": "B", "192.0.2.13": "C"}

def labels(path):
    output = subprocess.run(["mfsfileinfo", path], capture_output=True, text=True,
                          check=True, timeout=120).stdout
    return {servers[a] for a in servers if a + ":" in output}

def written(folder, count):
    found = set()
    for number in range(count):
        path = folder / f"f{number}-{len(list(folder.iterdir()))}"
        path.write_bytes(bytes(1000))
        found |= labels(path)
    return "".join(sorted(found))

job = root / "job"
(job / "sub" / "deep").mkdir(parents=True)
driver.assign(job, ["A"])
print("first", written(job, 4))
print("targets", targets_of(job))
old = sorted(job.glob("f*"))[0]
print("sub-first", written(job / "sub", 2), written(job / "sub" / "deep", 2))
driver.assign(job, ["B", "C"])
driver.assign(job, ["C", "B"])
print("then", written(job, 12))
print("more", targets_of(job))
print("old", "".join(labels(old)))
(job / "sub" / "new").mkdir()
print("sub-then", *(written(job / "sub" / name, 12) for name in ("", "deep", "new")))
try:
    driver.assign(root / "nowhere", ["A"])
except InputError as error:
    print("error", error)

# Two users: each has its folder assigned; a link to that of the other is refused, and
# so is the tool itself.
users = sorted((e for e in pwd.getpwall() if e.pw_uid), key=lambda e: e.pw_uid)[:2]
for user in users:
    (root / "users" / user.pw_name).mkdir(parents=True)
    os.chown(root / "users" / user.pw_name, user.pw_uid, user.pw_gid)
first, second = (root / "users" / user.pw_name for user in users)
assigner = FolderAssigner(
    f"moosefs:{root}:A,B,C", f"{root}/users/{{user}}/{{job}}", all_users=True
)

def assign(user, *orders):
    answers = assign_as(user.pw_uid, assigner, orders, threading.Event())
    return [answer.failure for answer in answers]

print("first-user", assign(users[0], FolderOrder("sim", ["A", "B"])))
print("second-user", assign(users[1], FolderOrder("sim", ["C"])))
(first / "link").symlink_to(second / "sim")
print("link", assign(users[0], FolderOrder("link", ["A"])))
done = subprocess.run(
    ["mfssetsclass", "penstock_A", str(second / "sim")], capture_output=True, text=True,
    user=users[0].pw_uid, group=users[0].pw_gid, extra_groups=[], timeout=120)
print("tool", done.returncode, " ".join((done.stdout + done.stderr).split()))
print("of-first", written(first / "sim", 8))
print("of-second", written(second / "sim", 4))
# Sub-folders that belong to the user are assigned, those of the other are not.
for user, name in zip(users, ("own", "theirs")):
    (first / "sim" / name).mkdir()
    os.chown(first / "sim" / name, user.pw_uid, user.pw_gid)
print("again", assign(users[0], FolderOrder("sim", ["C"])))
print("subs", *(written(first / "sim" / name, 8) for name in ("own", "theirs")))
owners = {path.owner() for path in (first / "sim", second / "sim")}
print("owners", owners == {user.pw_name for user in users})
"""


def test_new_files_follow_the_partition() -> None:
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    command = node_command(1, [sys.executable, "-c", _SCRIPT])
    done = subprocess.run(
        cluster_command(ClusterSpec(servers=3), command),
        env=cluster_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    output = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert output["first"] == "A"
    assert output["then"] == "BC"
    assert (output["sub-first"], output["sub-then"]) == ("A A", "BC BC BC")
    assert output["old"] == "A"
    assert (output["targets"], output["more"]) == ("1", "3")
    assert "mfssetsclass" in output["error"]
    assert "nowhere" in output["error"]
    assert output["first-user"] == output["second-user"] == "['']"
    assert "is not a folder that belongs to you" in output["link"]
    assert output["tool"].startswith("1 ")
    assert "not permitted" in output["tool"]
    assert (output["of-first"], output["of-second"]) == ("AB", "C")
    assert (output["again"], output["subs"]) == ("['']", "C AB")
    assert output["owners"] == "True"
