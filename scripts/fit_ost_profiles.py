# SPDX-License-Identifier: MIT
"""Fit the OST family, print how well it fits, and write the 301 profiles drawn from it.

    python scripts/fit_ost_profiles.py [FILE]

Without FILE only the table is printed. The committed file is
``src/penstock/workloads/data/ost_profiles.csv``; `tests/unit/workloads` checks that it
is what this script writes. Method: `penstock.workloads.profiles.ost_profiles`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock.workloads.profiles.ost_profiles import (
    SEED,
    Fit,
    draw_profiles,
    fit_measurements,
)
from penstock.workloads.profiles.profile_classes import ProfileShape, shape_of
from penstock.workloads.profiles.profiles import Profile

_HEADER = f"""\
# FITTED AND GENERATED, not the 301 configurations measured for target allocation.
# Made by scripts/fit_ost_profiles.py from ost_measurements.csv, seed {SEED}; bytes/s.
name,targets,bandwidth
"""


def table(fits: list[Fit]) -> Iterator[str]:
    """Return a Markdown table with the quality of each fit."""
    yield "| configuration | points | b(8)/b(1) | σ | κ | R² | error | worst | beyond |"
    yield "|---|---|---|---|---|---|---|---|---|"
    yield from (_row(item) for item in fits)


def summary(fits: list[Fit]) -> Iterator[str]:
    """Return the quality of all fits together, as lines of text."""
    errors = np.abs(np.concatenate([item.error() for item in fits]))
    beyond = np.abs(np.concatenate([item.error(11, 24) for item in fits]))
    # Three parameters always fit three points: such a fit does not test the family.
    tested = [item.determination for item in fits if item.error().size > 3]
    yield f"configurations {len(fits)}, points {errors.size}"
    yield f"relative error: median {np.median(errors):.1%}, mean {errors.mean():.1%}"
    yield f"R² of the {len(tested)} with over 3 points: median {np.median(tested):.2f}"
    yield f"beyond the fit (11 to 24 OSTs): median error {np.median(beyond):.1%}"


def _row(item: Fit) -> str:
    scaling, errors = item.scaling, np.abs(item.error())
    gain = scaling.bandwidth([8])[0] / scaling.single
    beyond = np.abs(item.error(11, 24)).mean()
    return (
        f"| {item.measurements.name} | {errors.size} | {gain:.2f} "
        f"| {scaling.sigma:.3f} | {scaling.kappa:.4f} | {item.determination:.2f} "
        f"| {errors.mean():.1%} | {errors.max():.0%} | {beyond:.0%} |"
    )


def document(drawn: list[Profile]) -> str:
    """Return the drawn profiles as a CSV."""
    lines = [
        f"{profile.name},{n},{bandwidth:.12g}\n"
        for profile in drawn
        for n, bandwidth in enumerate(profile.bandwidth.tolist(), 1)
    ]
    return _HEADER + "".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table; write the profiles if a file is named."""
    fits = fit_measurements()
    drawn = draw_profiles(fits)
    shapes = Counter(shape_of(profile.bandwidth) for profile in drawn)
    counts = ", ".join(f"{shape} {shapes[shape]}" for shape in ProfileShape)
    lines = [*table(fits), "", *summary(fits), f"drawn: {counts}"]
    sys.stdout.write("\n".join(lines) + "\n")
    for name in arguments:
        Path(name).write_text(document(drawn), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
