# SPDX-License-Identifier: MIT
"""Damaged frames, pages, bells and journals: refused or used, never a crash.

20,000 inputs in every run, a million in `make test-all`. An input is valid data with a
few changes; the seed of a run is fixed, so that a failure can be repeated.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from penstock.errors import InputError
from penstock.live.node.local_job import JobNote, LocalJob
from penstock.live.node.pages.bell import Bell
from penstock.live.node.pages.page_layout import PageWords
from penstock.live.staging.drain import list_journals
from penstock.live.wire.messages import (
    FROM_AGENT,
    FROM_PROGRAM,
    REPLY,
    TO_AGENT,
    TO_MOUNT,
    VERSION,
    AgentConfig,
    AttachProcess,
    CounterReport,
    ExplainJob,
    Grants,
    HintVolume,
    JobJoined,
    Message,
    MessageError,
    MountCredit,
    MountReport,
    MountUse,
    PageAssigned,
    Refused,
    RegisterJob,
    SetLimit,
    encode,
)
from penstock.native.files import SOURCES
from support.journals import HandMadeJournal

#: Share of the inputs of a run, by kind.
_FRAMES, _PAGES, _BELLS, _JOURNALS, _DRAINS = 0.44, 0.025, 0.01, 0.025, 0.5
_CI, _ALL = 20_000, 1_000_000

_MESSAGES: tuple[Message, ...] = (
    AttachProcess("fuzz", 3, 5.0, "/"),
    RegisterJob("fuzz", 1, 2, "account", 4, "/"),
    HintVolume("fuzz", 1.0),
    SetLimit("fuzz", 1.0),
    ExplainJob("fuzz"),
    PageAssigned("/page", ["/a", "/b"]),
    Refused("why", retry=True),
    JobJoined("1:fuzz", 1, "g", 2, 3.0),
    Grants({"1:fuzz": 1.5}, {"1:fuzz": True}),
    CounterReport([], 3),
    MountReport("s", "run", 2, {"a": 1e6}, {"a": MountUse(1.0, 2.0, 0.5, 0)}),
    MountCredit("run", "c", 3, {"a": 1.0}, 1.0, {"a": 2.0}),
)
_DECODERS = (FROM_PROGRAM, REPLY, FROM_AGENT, TO_AGENT, TO_MOUNT)
_WORDS = (0, 1, 63, 64, 4096, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)

counts = pytest.mark.parametrize(
    "count", [_CI, pytest.param(_ALL, marks=pytest.mark.slow)]
)


def damaged(valid: bytes, random: Random, *, size_changes: bool = True) -> bytes:
    """Return data with a few bytes or words changed, and perhaps another size."""
    data = bytearray(valid)
    for _ in range(random.randrange(6)):
        place = random.randrange(len(data))
        if random.random() < 0.5:
            data[place] = random.randrange(256)
        else:
            word = random.choice((*_WORDS, random.getrandbits(64)))
            place -= place % 8
            part = word.to_bytes(8, "little")[: len(data) - place]
            data[place : place + len(part)] = part
    if size_changes and random.random() < 0.1:
        del data[random.randrange(len(data)) :]
    return bytes(data)


@counts
def test_a_damaged_frame_is_decoded_or_refused(count: int) -> None:
    random = Random(1)
    valid = [encode(message) for message in _MESSAGES]
    decoded = 0
    for _ in range(int(count * _FRAMES)):
        data = bytearray(damaged(random.choice(valid), random))
        if data and random.random() < 0.5:
            data[0] = VERSION
        decode = random.choice(_DECODERS)
        try:
            message = decode(bytes(data))
        except MessageError:
            continue
        # A message that is accepted can be sent on.
        decode(encode(message))
        decoded += 1
    assert decoded > 0


# --- Pages and bells ------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> Iterator[LocalJob]:
    """Return a job with a page."""
    note = JobNote("7:fuzz", os.geteuid(), os.getegid(), 1, 0.0)
    created = LocalJob.create(tmp_path, note)
    yield created
    created.close(remove=True)


def _use_page(job: LocalJob) -> None:
    """Use a page as the agent does."""
    counters = job.read_counters(0.05, reads=True)
    report = CounterReport([counters], 1)
    # Otherwise the controller would refuse the reports of the whole node.
    assert FROM_AGENT(encode(report)) == report
    job.apply(AgentConfig("control", [], 0.05, 0.1, 1.0, 1e3, reads=True), 1.0)
    job.page.grant(1e6)
    job.leftovers()


@counts
def test_a_damaged_page_is_used_or_refused(count: int, job: LocalJob) -> None:
    random = Random(2)
    valid, used = job.page.path.read_bytes(), 0
    most = ctypes.sizeof(PageWords)
    descriptor = os.open(job.page.path, os.O_RDWR)
    for _ in range(int(count * _PAGES)):
        head = damaged(valid[:most], random, size_changes=False)
        os.ftruncate(descriptor, len(valid))
        os.pwrite(descriptor, head + valid[most:], 0)
        if random.random() < 0.05:
            os.ftruncate(descriptor, random.randrange(len(valid)))
        with suppress(InputError):
            _use_page(job)
            used += 1
    os.pwrite(descriptor, valid, 0)
    os.close(descriptor)
    assert used > 0


@counts
def test_a_damaged_bell_is_used_or_refused(count: int, tmp_path: Path) -> None:
    random, user = Random(3), os.geteuid()
    bell = Bell.get(tmp_path, user, os.getegid())
    valid, used = bell.path.read_bytes(), 0
    bell.close()
    for _ in range(int(count * _BELLS)):
        bell.path.write_bytes(damaged(valid, random))
        with suppress(InputError):
            opened = Bell.open(bell.path, user, os.getegid())
            _, moved = opened.look()
            opened.renew(1.0)
            opened.close()
            assert not moved
            used += 1
    assert used > 0


# --- Journals -------------------------------------------------------------------------


@counts
def test_a_damaged_journal_is_listed(count: int, tmp_path: Path) -> None:
    random = Random(4)
    made = HandMadeJournal(tmp_path, checked=True)
    for number in range(5):
        made.append(100 * number, b"x" * 100)
    valid = made.path.read_bytes()
    for _ in range(int(count * _JOURNALS)):
        made.path.write_bytes(damaged(valid, random))
        (report,) = list_journals(made.folder)
        assert 0 <= report.pending_bytes <= 500


@pytest.fixture(scope="module")
def drain_fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled ``fuzz_journal.c``."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_journal"
    stage = SOURCES / "stage"
    own = Path(__file__).with_name("fuzz_journal.c")
    sources = own, stage / "journal.c", stage / "stage_text.c"
    checks = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    done = subprocess.run(
        [
            *("gcc", "-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", *checks),
            *(f"-I{SOURCES / name}" for name in ("shim", "stage")),
            *(*map(str, sources), "-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0 and "cannot find" in done.stderr:
        pytest.skip("needs the sanitizers of gcc")
    assert done.returncode == 0, done.stderr
    return program


@counts
def test_a_damaged_journal_is_drained_without_an_invalid_access(
    count: int, drain_fuzzer: Path
) -> None:
    """Its owner changes it while it is drained."""
    memory = Path("/dev/shm")  # noqa: S108 - thousands of small files
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="penstock-fuzz-") as folder:
        done = subprocess.run(
            [drain_fuzzer, folder, "5", str(int(count * _DRAINS))],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    opened, drained_bytes = map(int, done.stdout.split())
    assert opened > 0.5 * count * _DRAINS
    assert drained_bytes > 0
