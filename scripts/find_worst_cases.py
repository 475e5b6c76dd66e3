# SPDX-License-Identifier: MIT
"""Search for small instances on which policies are far from the bound.

    python scripts/find_worst_cases.py [FOLDER]

Write one instance per policy and a README with the numbers. The committed folder is
``examples/worst-cases``; `tests/theory/test_worst_cases.py` checks its numbers.
`adversary_search` describes the method. Takes a few minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from adversary_search import (
    Search,
    WorstCase,
    evaluate,
    find_worst,
)

from penstock.model import Instance, write_instance

#: The policies beyond the papers, and the fairest ones of bandwidth sharing.
POLICIES = (
    "soft-deadline",
    "earliest-deadline",
    "short-over-loss",
    "greedy-yield",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield",
    "best-next-event",
)
SEARCH = Search(restarts=8, steps=800)

_HEADER = f"""\
# Worst cases

Small instances on which the MinYield of a policy is far below the bound, which no
scheduler can exceed. There is one for each policy beyond the papers and for each of the
fairest policies of bandwidth sharing. Hill climbing found them
({SEARCH.restarts} restarts of {SEARCH.steps} steps, seed {SEARCH.seed},
at most {SEARCH.max_applications} applications with
{SEARCH.max_operations} operations each, works and volumes in multiples of 1/8,
b_i = B = 1, a window of {SEARCH.window_s:g} s).
The file of a policy is the worst instance for it of all that were found:

```sh
python scripts/find_worst_cases.py examples/worst-cases
penstock compare examples/worst-cases/soft-deadline.json
```

*Best*: the highest MinYield that any policy of penstock has on the instance, and the
first policy that has it.

| policy | MinYield | bound | distance | best | of |
|---|---|---|---|---|---|
"""


def table(cases: list[WorstCase]) -> Iterator[str]:
    """Return one line of a Markdown table per case."""
    for case in cases:
        numbers = (case.min_yield, case.bound, case.distance, case.best_known)
        shown = " | ".join(f"{number:.4f}" for number in numbers)
        yield f"| [{case.policy}]({case.policy}.json) | {shown} | {case.best_policy} |"


def worst(policy: str, instances: list[Instance]) -> WorstCase:
    """Return the instance on which a policy is furthest from the bound."""
    return max((evaluate(policy, i) for i in instances), key=lambda case: case.distance)


def write(cases: list[WorstCase], folder: Path) -> None:
    """Write the instances and the README."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        write_instance(case.instance, folder / f"{case.policy}.json")
    (folder / "README.md").write_text(_HEADER + "\n".join(table(cases)) + "\n")


def main() -> None:
    """Search for every policy, then write the files."""
    instances = []
    for policy in POLICIES:
        case = find_worst(policy, SEARCH)
        instances.append(case.instance)
        sys.stderr.write(f"{policy}: {case.distance:.4f}\n")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/worst-cases")
    write([worst(policy, instances) for policy in POLICIES], folder)


if __name__ == "__main__":
    main()
