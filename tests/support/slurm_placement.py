# SPDX-License-Identifier: MIT
"""Jobs of a real Slurm on storage targets: ``-m support.slurm_placement FOLDER``.

Two nodes with an agent each, the first with the controller, which places jobs of all
users. The prolog of the first node, which knows the name of a job, is the slower one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

from support.daemons import Daemon
from support.users import NOBODY
from support.waiting import LIMIT_S, until

NAMES = ("A", "B", "C")
#: Each task waits for its folder and writes to its slot, three times.
_SCRIPT = """
folder={users}/nobody/$SLURM_JOB_ID
while [ ! -e {folder}/go ]; do sleep 0.1; done
for number in 1 2 3; do
    file=$folder/$SLURM_PROCID/$SLURM_JOB_ID.$SLURM_PROCID.$number
    dd if=/dev/zero of=$file bs=64k count=16 2>/dev/null || exit 1
    sleep 1
done
"""


class Cluster:
    """The agents of two nodes, and the folders of targets and of users."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.data = folder, folder / "data"
        self.targets, self.users = self.data / "targets", self.data / "users"
        for path in (*(self.targets / name for name in NAMES), self.users / "nobody"):
            path.mkdir(parents=True)
            path.chmod(0o1777)
        os.chown(self.users / "nobody", NOBODY, NOBODY)
        keys, address = str(folder / "keys"), "tcp://127.0.0.1:7400"
        shared = {"users": "all", "keys": keys, "prefixes": str(self.data)}
        first, second = (
            stack.enter_context(closing(Daemon(folder / name, node=name, **shared)))
            for name in ("n1", "n2")
        )
        assert first.command("serve", "--make-keys", keys).returncode == 0
        second.settings["join"] = address
        first.settings |= {
            "listen": address,
            "bandwidth": "100 MB/s",
            "targets": f"directories:{self.targets}:{','.join(NAMES)}",
            "job_folder": f"{self.users}/{{user}}/{{job}}",
            "placement": "t-cpu+greedy-non-clairvoyant",
            "target_bandwidths": "50 MB/s",
            "job_classes": "steep*=ascent",
        }
        self.controller = first
        first.start()
        second.start()
        until(lambda: len(first.status()["agents"]) == 2)

    def start(self, name: str) -> tuple[subprocess.Popen[str], str]:
        """Start a job of this name on both nodes; return it with its number."""
        script = _SCRIPT.format(users=self.users, folder=self.folder)
        job = subprocess.Popen(
            ["srun", "--quiet", "-N2", "-n2", f"--job-name={name}", "sh", "-c", script],
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            cwd=self.data,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until(self._is_on_both_nodes)
        return job, self.controller.status()["jobs"][0]["job"]

    def _is_on_both_nodes(self) -> bool:
        jobs = self.controller.status()["jobs"]
        return bool(jobs) and len(jobs[0]["nodes"]) == 2

    def run(self, name: str) -> str:
        """Run a job of this name; return what its user is told of its targets."""
        (self.folder / "go").unlink(missing_ok=True)
        job, number = self.start(name)
        told = self.controller.ctl("explain", number)
        given = re.search("storage targets ([A-C, ]+): ", told)
        assert given is not None, told
        folder = self.users / "nobody" / number
        targets = set(given[1].split(", "))
        until(lambda: {each.parts[-2] for each in _links_of(folder)} == targets)
        (self.folder / "go").touch()
        printed, _ = job.communicate(timeout=LIMIT_S)
        assert job.returncode == 0, printed
        until(lambda: not self.controller.status()["jobs"])
        slots = [folder / str(rank) for rank in (0, 1)]
        expected = {slot.resolve() / f"{number}.{slot.name}.3" for slot in slots}
        assert expected <= {*self.targets.glob("*/nobody/*")}, told
        assert {file.stat().st_uid for file in expected} == {NOBODY}
        return told


def _links_of(folder: Path) -> list[Path]:
    return [link.readlink() for link in folder.glob("[0-9]") if link.is_symlink()]


def main() -> None:
    """Run a job twice, and one of another class."""
    with ExitStack() as stack:
        cluster = Cluster(Path(sys.argv[1]), stack)
        # The class is that of the name in Slurm.
        first = cluster.run("steep")
        assert "best-bandwidth gives it 3 of 3 targets (t-cpu would have to" in first
        # The second run is placed by what the first one has done.
        second = cluster.run("steep")
        assert re.search(r": t-cpu gives it \d of 3 targets, greedy", second), second
        other = cluster.run("plain")
        assert "best-bandwidth gives it 1 of 3 targets (t-cpu would have to" in other
    print("all jobs placed", flush=True)


if __name__ == "__main__":
    main()
