# SPDX-License-Identifier: MIT
"""Files that are redirected: a page with a partition, and the folder of the parts."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.live.node.pages.page import LEASE_MAX_S, Page
from penstock.live.wire.messages import Partition
from support.stages import Stage

__all__ = ["SLOTS", "Redirected", "moving"]

#: Slots in the folder of a job: links to the folders of its storage targets.
SLOTS = 2
_TARGETS = 3


@dataclass
class Redirected:
    """A staged folder whose files are redirected when its partition changes."""

    stage: Stage
    page: Page
    folder: Path
    targets: Path

    @classmethod
    def make(cls, stage: Stage, page: Page, number: int = 1) -> Redirected:
        """Make the folder of the parts, and set the first partition."""
        folder, targets = (stage.folder.parent / name for name in ("parts", "targets"))
        for target in range(_TARGETS):
            (targets / str(target)).mkdir(parents=True, exist_ok=True)
        made = cls(stage, page, folder, targets)
        page.renew(LEASE_MAX_S)
        made.move(number)
        return made

    def move(self, number: int, *, age_s: float = 0.0) -> None:
        """Change the partition: its slots lead to other targets.

        Files that are younger than `age_s` are not redirected.
        """
        self.folder.mkdir(exist_ok=True)
        for slot in range(SLOTS):
            new = self.folder / f".new-{slot}"
            new.symlink_to(self.targets / str((slot + number) % _TARGETS))
            new.replace(self.folder / str(slot))
        roots = (str(self.stage.folder.resolve()),)
        place = Partition(number, str(self.folder), SLOTS, roots, redirect_age_s=age_s)
        self.page.place(place)

    def environment(self, *, durable: str = "file") -> dict[str, str]:
        """Return the environment of a program whose files are redirected."""
        return self.stage.environment(
            page=self.page.path, always=False, durable=durable
        )

    def parts(self) -> list[Path]:
        """Return the parts that there are."""
        return sorted(self.targets.glob("*/.penstock-*.part"))

    def slot_of(self, part: Path) -> int:
        """Return the slot that leads to the target of a part."""
        links = [self.folder / str(slot) for slot in range(SLOTS)]
        return [link.resolve() for link in links].index(part.parent.resolve())


@contextlib.contextmanager
def moving(redirected: Redirected, chance: random.Random) -> Iterator[list[int]]:
    """Change the partition at random moments; yield how many parts were seen."""
    over = threading.Event()
    seen = [0]
    pauses = [chance.random() * 0.003 for _ in range(50)]
    numbers = [chance.randrange(1, 4) for _ in range(50)]

    def work() -> None:
        turn = 0
        while not over.is_set():
            redirected.move(numbers[turn % 50])
            time.sleep(pauses[turn % 50])
            seen[0] = max(seen[0], len(redirected.parts()))
            turn += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
