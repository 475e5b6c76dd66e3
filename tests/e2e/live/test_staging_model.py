# SPDX-License-Identifier: MIT
"""Any sequence of calls has the same answers and files with and without staging.

The same holds for files that are redirected to other storage targets.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.live.node.pages.page import LEASE_MAX_S, Page
from penstock.live.node.pages.page_layout import PageWords, StagingWords
from penstock.live.staging.drainers import Drainer
from support import file_driver
from support.parts import Redirected
from support.stages import Stage, files
from support.waiting import LIMIT_S

#: Where the number of the partition is in a page.
_PARTITION = PageWords.staging.offset + StagingWords.partition.offset
#: More than a journal holds, so that some writes drain first.
CAPACITY = 64 << 10

#: Mostly one descriptor and one file, so that calls meet staged data.
slots = st.sampled_from([0, 0, 0, 1])
names = st.sampled_from(["a", "a", "a", "b"])
seeds = st.integers(0, 250)
sizes = st.one_of(
    st.integers(0, 300), st.sampled_from([4096, 9000, 30000, 65472, 80000])
)
places = st.one_of(st.integers(0, 500), st.sampled_from([4096, 70000]))
opening = st.tuples(
    st.just("open"),
    slots,
    names,
    st.sampled_from(["w", "wt", "rw", "a", "r", "x", "s"]),
)
#: Most steps are writes.
writing = st.one_of(
    st.tuples(st.just("write"), slots, seeds, sizes),
    st.tuples(st.just("writev"), slots, seeds, sizes),
    st.tuples(st.just("pwrite"), slots, seeds, sizes, places),
)
looking = st.one_of(
    st.tuples(st.just("read"), slots, sizes),
    st.tuples(st.just("pread"), slots, sizes, places),
    st.tuples(st.just("fstat"), slots),
    st.tuples(st.just("stat"), names),
    st.tuples(st.just("look"), names),
    st.tuples(st.just("map"), slots),
    st.tuples(st.just("cat"), names),
)
changing = st.one_of(
    st.tuples(st.just("seek"), slots, st.integers(-100, 9000), st.integers(0, 2)),
    st.tuples(st.just("ftruncate"), slots, places),
    st.tuples(st.just("truncate"), names, places),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("link"), names, st.just("c")),
    st.tuples(st.just("unlink"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("put"), names, seeds, sizes),
    st.tuples(st.just("copy"), slots, slots, sizes),
    st.tuples(st.just("lock"), slots),
    st.tuples(st.just("append_later"), slots),
    st.tuples(st.just("dup"), slots, slots),
    st.tuples(st.just("fsync"), slots),
    st.tuples(st.just("close"), slots),
)
plain_step = st.one_of(opening, writing, looking, changing)
forking = st.tuples(st.just("fork"), st.lists(plain_step, max_size=4))
#: Stage data, then make a call that touches them.
meeting = st.tuples(writing, st.one_of(looking, looking, changing, changing, forking))
step = st.one_of(meeting, meeting, st.tuples(opening), st.tuples(plain_step))
script = st.builds(
    lambda how, steps: [("open", 0, "a", how), *(one for few in steps for one in few)],
    st.sampled_from(["w", "wt", "rw"]),
    st.lists(step, min_size=1, max_size=9),
)


def _drawn(seed: int) -> list[Any]:
    """Return a script in which all calls are equally likely, unlike hypothesis."""
    chance = random.Random(seed)
    sizes = (0, 1, 100, 300, 4096, 9000, 30000, 65472, 80000)
    places = (0, 1, 50, 200, 4096, 70000)
    words: dict[str, Callable[[], object]] = {
        "slot": lambda: chance.choice([0, 0, 0, 1]),
        "name": lambda: chance.choice(["a", "a", "a", "b"]),
        "seed": lambda: chance.randrange(250),
        "size": lambda: chance.choice(sizes),
        "place": lambda: chance.choice(places),
        "back": lambda: chance.choice([-50, 0, 10, 5000]),
        "whence": lambda: chance.choice([0, 1, 2, 2]),
        "how": lambda: chance.choice(["w", "w", "wt", "rw", "rw", "a", "r", "x", "s"]),
    }
    writes = (
        *("write slot seed size", "writev slot seed size"),
        "pwrite slot seed size place",
    )
    others = (
        *("read slot size", "pread slot size place", "fstat slot", "stat name"),
        *("look name", "map slot", "cat name", "seek slot back whence"),
        *("seek slot back whence", "ftruncate slot place", "truncate name place"),
        *("rename name name", "link name name", "unlink name", "put name seed size"),
        *("copy slot slot size", "lock slot", "append_later slot", "dup slot slot"),
        *("fsync slot", "close slot", "open slot name how", "open slot name how"),
    )

    def step(form: str) -> list[Any]:
        name, *rest = form.split()
        return [name, *(words[word]() for word in rest)]

    steps: list[list[Any]] = [["open", 0, "a", chance.choice(["w", "wt", "rw"])]]
    for _ in range(chance.randrange(1, 9)):
        steps += [step(chance.choice(writes)) for _ in range(chance.choice([0, 1, 2]))]
        if chance.random() < 0.1:
            inner = [step(chance.choice(writes + others)) for _ in range(3)]
            steps.append(["fork", inner])
        else:
            steps.append(step(chance.choice(others)))
    return steps


class Pair:
    """Two drivers: one under staging, one without the library.

    Parameters
    ----------
    drained
        Whether a drainer runs beside the one that stages.
    moved
        Whether data is not staged but redirected: storage targets change all the time.
    """

    def __init__(self, root: Path, *, drained: bool, moved: bool = False) -> None:
        self._numbers = count()
        self._page = Page.create(root / "page")
        self._drainer = Drainer(self._page.path, os.geteuid(), os.getegid())
        self._drained = drained
        self._moved = moved
        self.scripts = 100 if moved else 300
        self._stages = []
        self._drivers: list[subprocess.Popen[bytes]] = []
        for kind in ("staged", "plain"):
            stage = Stage(root / kind, root / f"{kind}-journals")
            stage.folder.mkdir()
            stage.journals.mkdir(mode=0o700)
            environment = {}
            if kind == "staged":
                environment = stage.environment(
                    CAPACITY, page=self._page.path, always=not moved
                )
                self.redirected = Redirected.make(stage, self._page)
                environment["MOVED_PAGE"] = f"{self._page.path}:{_PARTITION}"
            command = (sys.executable, "-S", "-E", file_driver.__file__)
            self._drivers.append(stage.start(*command, environment=environment))
            self._stages.append(stage)

    def check(self, steps: list[Any]) -> None:
        """Let both do the steps; answers and files must be the same."""
        name = str(next(self._numbers))
        answers = []
        if self._moved:
            steps = _with_moves(steps)
            self._page.renew(LEASE_MAX_S)
        if self._drained:
            self._drainer.keep(self._stages[0].journals)
        for driver, stage in zip(self._drivers, self._stages, strict=True):
            (stage.folder / name).mkdir()
            assert driver.stdin is not None
            assert driver.stdout is not None
            driver.stdin.write(json.dumps([name, steps]).encode() + b"\n")
            driver.stdin.flush()
            answers.append(json.loads(driver.stdout.readline() or b'"died"'))
        assert answers[0] == answers[1]
        left = [files(stage.folder / name) for stage in self._stages]
        assert left[0] == left[1]
        assert self._stages[0].left_over() == []
        assert self.redirected.parts() == []

    def close(self) -> None:
        """End both."""
        for driver in self._drivers:
            driver.communicate(timeout=LIMIT_S)
        self._page.close()


def _with_moves(steps: list[Any]) -> list[Any]:
    """Return the steps with a change of the storage targets before every second one."""
    moved: list[Any] = []
    for turn, step in enumerate(steps):
        if turn % 2 == 1:
            moved.append(["move", 1 + (turn // 2 + 1) % 3])
        moved.append(step)
    return [["move", 1], *moved]


@pytest.fixture(scope="module", params=["alone", "beside a drainer", "redirected"])
def pair(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Pair]:
    root = tmp_path_factory.mktemp("model")
    moved = request.param == "redirected"
    made = Pair(root, drained=request.param == "beside a drainer", moved=moved)
    yield made
    made.close()


_SAME = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@settings(_SAME, max_examples=150)
@given(script)
def test_scripts_answer_the_same_with_staging(pair: Pair, steps: list[Any]) -> None:
    pair.check(steps)


def test_random_scripts_answer_the_same_with_staging(pair: Pair) -> None:
    for seed in range(pair.scripts):
        print(f"seed {seed}")
        pair.check(_drawn(seed))


@pytest.mark.slow
def test_many_random_scripts_answer_the_same_with_staging(pair: Pair) -> None:
    for seed in range(1000, 6000):
        print(f"seed {seed}")
        pair.check(_drawn(seed))


@pytest.mark.slow
@settings(_SAME, max_examples=3000)
@given(script)
def test_long_scripts_answer_the_same_with_staging(
    pair: Pair, steps: list[Any]
) -> None:
    pair.check(steps)
