# SPDX-License-Identifier: MIT
"""Baseline: bandwidth sharing written with SimGrid, in C++ (simgrid/baseline.cpp).

Needs g++ and SimGrid 3.32 with its headers (Debian: ``libsimgrid-dev``); without
them `simulate` prints a message and returns None. The program is compiled once and
kept in the cache directory of the user.

Every application must be able to saturate the storage (b_i = B).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from penstock.model import Instance

__all__ = ["POLICIES", "Run", "build", "simulate"]

POLICIES: Final = ("fair-share", "fcfs", "greedy-yield", "greedy-com")

_SOURCE: Final = Path(__file__).with_name("simgrid") / "baseline.cpp"
_COMPILE: Final = ("g++", "-std=c++17", "-O3", "-DNDEBUG")
#: Relative precision of the solver (default 1e-5), precision of the clock (s).
_PRECISION: Final = ("--cfg=maxmin/precision:1e-9", "--cfg=surf/precision:1e-9")


class Run(NamedTuple):
    """Result of one run of the program."""

    yields: list[float]
    """Yields at the end of the window."""
    events: int
    """Posts and completions before the end of the window."""
    seconds: float
    """Time spent inside SimGrid's engine, without reading and printing (s)."""


@cache
def build() -> Path | None:
    """Return the compiled program; None, and a line on why, if there cannot be one."""
    if shutil.which(_COMPILE[0]) is None:
        print(f"SimGrid baseline left out: {_COMPILE[0]} is not installed")
        return None
    recipe = _SOURCE.read_bytes() + repr(_COMPILE).encode()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "penstock" / "benchmarks"
    program = folder / f"simgrid-{hashlib.sha256(recipe).hexdigest()[:16]}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        fresh = Path(temporary) / "baseline"
        done = subprocess.run(
            [*_COMPILE, "-o", str(fresh), str(_SOURCE), "-lsimgrid"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            reason = errors[0] if errors else f"{_COMPILE[0]} failed"
            print(f"SimGrid baseline left out (libsimgrid-dev 3.32?): {reason}")
            return None
        fresh.replace(program)
    return program


def simulate(instance: Instance, policy: str) -> Run | None:
    """Run the program on `instance`; None if it cannot be built here."""
    program = build()
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.f64"
        _doubles(instance).tofile(path)
        done = subprocess.run(
            [str(program), str(path), policy, *_PRECISION, "--log=root.thres:warning"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"the SimGrid baseline failed: {done.stderr.strip()}")
    return Run(**json.loads(done.stdout))


def _doubles(instance: Instance) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return `instance` in the form that the program reads."""
    if (instance.caps != instance.platform.bandwidth).any():
        raise ValueError("the SimGrid baseline reads instances with b_i = B only")
    # SimGrid's clock begins at 0.
    origin = min(a.start for a in instance.applications)
    parts: list[object] = [
        [
            len(instance.applications),
            instance.window.end - origin,
            instance.platform.bandwidth,
        ]
    ]
    for a, cap in instance.with_caps():
        history = [a.release - origin, a.start - origin, a.lost_at_start(cap)]
        parts += [[*history, len(a.volume)], a.work, a.volume]
    return np.concatenate(parts, dtype=np.float64)  # type: ignore[arg-type]
