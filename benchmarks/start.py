# SPDX-License-Identifier: MIT
"""How long commands take to start, as ratios to ``python -c "import numba"``.

``python benchmarks/start.py [--rounds R]``

Processor times of whole processes, which are compiled before; the rounds alternate. The
smallest time of each command counts. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "three.json")
REFERENCE = ["-c", "import numba"]
#: Command -> the largest ratio that is allowed. An import of Numba takes 0.27 s.
GOALS = {
    ("compare", EXAMPLE): 2.6,
    ("policies",): 1.0,
    ("--help",): 1.0,
    ("run", "--", "true"): 1.0,
}


def processor_time_s(arguments: list[str]) -> float:
    """Return the processor time of a Python process with these arguments."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    user_s = after.children_user - before.children_user
    return user_s + after.children_system - before.children_system


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    commands = [["-m", "penstock", *words] for words in GOALS]
    for command in commands:
        processor_time_s(command)
    times = [
        [processor_time_s(command) for command in (REFERENCE, *commands)]
        for _ in range(rounds)
    ]
    reference_s, *measured_s = (min(column) for column in zip(*times, strict=True))
    print(f"import numba: {reference_s:.2f} s of processor time")
    missed = 0
    for (words, goal), seconds in zip(GOALS.items(), measured_s, strict=True):
        ratio = seconds / reference_s
        missed += ratio > goal
        name = " ".join(words).replace(EXAMPLE, "examples/three.json")
        print(f"{name}: {seconds:.2f} s, {ratio:.2f} times (goal: {goal:g})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
