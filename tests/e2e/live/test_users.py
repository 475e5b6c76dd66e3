# SPDX-License-Identifier: MIT
"""Two users of one daemon, whose jobs stage and have storage targets of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.live.node.pages.page import Page
from penstock.live.staging.rules import Staging
from penstock.native.files import shim_path
from support.daemons import Daemon
from support.users import NEEDS_ROOT, as_user, open_for_all, two_known_users
from support.waiting import LIMIT_S, until

#: Other users need not have access to the Python of this test.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""
pytestmark = [
    NEEDS_ROOT,
    pytest.mark.skipif(not PYTHON, reason="needs a Python that all users can run"),
]
NAMES = ("a", "b", "c", "d")
#: Does what the lines of its input say, and prints a line for each.
_WRITER = """
import os, sys
for line in sys.stdin:
    word, _, rest = line.rstrip("\\n").partition(" ")
    if word == "open":
        fd = os.open(rest, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    elif word == "write":
        os.write(fd, rest.encode())
    elif word == "close":
        os.close(fd)
    print("done", flush=True)
"""


class Site:
    """A daemon for all users, two plain targets, and two users with folders."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.first, self.second = two_known_users()
        self.daemon = Daemon(folder, lease="60 s", gap="10 s", **settings)
        self.data = self.daemon.data
        self.targets, self.users = self.data / "targets", self.data / "users"
        for name in NAMES:
            (self.targets / name).mkdir(parents=True)
            (self.targets / name).chmod(0o1777)
        for user in (self.first, self.second):
            self.folder(user).mkdir(parents=True)
            os.chown(self.folder(user), user.pw_uid, user.pw_gid)
        self.daemon.settings |= {
            "users": "all",
            "targets": f"directories:{self.targets}:{','.join(NAMES)}",
            "job_folder": f"{self.users}/{{user}}/{{job}}",
        }
        open_for_all(self.data)
        self.library = folder / "libpenstock.so"
        shutil.copyfile(shim_path(), self.library)
        self.library.chmod(0o755)

    def folder(self, user: pwd.struct_passwd, *names: str) -> Path:
        """Return the folder of a user, or one in it."""
        return self.users.joinpath(user.pw_name, *names)

    def start(self, user: pwd.struct_passwd, job: str) -> UserJob:
        """Start a job of a user, which stages when it is told to."""
        journals = self.daemon.folder / f"journals-{user.pw_name}"
        journals.mkdir(mode=0o700, exist_ok=True)
        os.chown(journals, user.pw_uid, user.pw_gid)
        words = [str(user.pw_uid), str(self.daemon.home / "agent.sock")]
        words += [str(self.library), job, PYTHON, "-c", _WRITER]
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        process = self.daemon._popen(
            [sys.executable, "-m", "support.user_job", *words],
            extra={
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                **Staging(journals, always=False).environment(),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return UserJob(process)


class UserJob:
    """A program under control."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def do(self, *lines: str) -> None:
        """Let the program do something."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for line in lines:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        """End the program."""
        assert self.process.communicate(timeout=LIMIT_S)[1] == ""
        assert self.process.returncode == 0


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Return a site with the settings that are the parameter of the test."""
    open_for_all(tmp_path)
    made = Site(tmp_path, request.param)
    with closing(made.daemon):
        made.daemon.start()
        yield made
        assert "Traceback" not in made.daemon.log
        assert made.daemon.stop() == 0


@pytest.mark.parametrize("site", [{"strategy": "3b"}], indirect=True)
def test_open_streams_of_two_users_are_redirected(site: Site) -> None:
    """Both jobs have the same name, and all files belong to the users."""
    first = site.start(site.first, "sim")
    until((site.folder(site.first, "sim", "1")).is_symlink)
    (path,) = site.daemon.home.rglob("*.page")
    with Page.open(path) as page:
        until(lambda: page.partition > 0)
    own = site.targets / "b" / site.first.pw_name / "out"
    first.do(f"open {site.folder(site.first, 'sim', '1', 'out')}", "write 0 ")
    second = site.start(site.second, "sim")
    until((site.folder(site.second, "sim", "0")).is_symlink)
    second.do(f"open {site.folder(site.second, 'sim', '0', 'out')}", "write second")
    text = ["0 "]

    def parts() -> list[Path]:
        text.append(f"{len(text)} ")
        first.do(f"write {text[-1]}")
        return list(site.targets.glob("*/*/.penstock-*.part"))

    until(parts)
    (part,) = site.targets.glob("*/*/.penstock-*.part")
    assert part.owner() == part.parent.name == site.first.pw_name
    assert own.read_text() != "".join(text)
    first.do("close")
    assert own.read_text() == "".join(text)
    for job in (first, second):
        job.end()
    for path in (*site.users.rglob("*"), *site.targets.glob("*/**/*")):
        names = set(path.relative_to(site.data).parts)
        (user,) = names & {site.first.pw_name, site.second.pw_name}
        assert pwd.getpwuid(path.lstat().st_uid).pw_name == user


@pytest.mark.parametrize("site", [{"strategy": "3a"}], indirect=True)
def test_a_user_does_not_reach_the_folder_of_another_one(site: Site) -> None:
    victim = site.start(site.second, "sim")
    links = [site.folder(site.second, "sim", slot) for slot in "0123"]
    until(lambda: all(link.is_symlink() for link in links))
    before = [(link.readlink(), link.lstat().st_ino) for link in links]
    stolen = site.folder(site.first, "stolen")
    as_user(site.first.pw_uid, lambda: stolen.symlink_to(links[0].parent))
    jobs = [
        site.start(site.first, name)
        for name in ("stolen", f"../{site.second.pw_name}/sim")
    ]
    reasons = ("is not a folder that belongs to you", "cannot be the name of a folder")
    until(lambda: all(reason in site.daemon.ctl("status") for reason in reasons))
    assert [(link.readlink(), link.lstat().st_ino) for link in links] == before
    # The folder above belongs to root: the kernel refuses a new one in it.
    stolen.unlink()
    site.folder(site.first).rmdir()
    jobs.append(site.start(site.first, "homeless"))
    until(lambda: "Permission denied" in site.daemon.ctl("status"))
    assert "Permission denied" in site.daemon.ctl("explain", "homeless")
    assert sorted(path.name for path in site.users.iterdir()) == [site.second.pw_name]
    for job in (*jobs, victim):
        job.end()


@pytest.mark.parametrize(
    "site",
    [
        {
            "placement": "best-bandwidth+greedy-non-clairvoyant",
            "target_bandwidths": "50 MB/s,40 MB/s",
        }
    ],
    indirect=True,
)
def test_jobs_and_folders_of_two_users_are_placed(site: Site) -> None:
    job = site.start(site.first, "sim")
    placed = site.folder(site.first, "sim", "0")
    until(placed.is_symlink)
    # The other user makes a folder, and starts a program without penstock.
    found = site.folder(site.second, "plain")
    as_user(site.second.pw_uid, found.mkdir)
    until((found / "0").is_symlink)
    assert (found / "0").lstat().st_uid == site.second.pw_uid
    assert (found / "0").resolve().name == site.second.pw_name
    text = site.daemon.ctl("explain", "plain")
    assert f"{site.second.pw_name}:plain is known by its folder only" in text
    places = [link.resolve().parent.name for link in (placed, found / "0")]
    assert len(set(places)) == 2
    job.end()
