# SPDX-License-Identifier: MIT
"""BBIO as printed: a program links libbbio.a and is run under libbbio_posix.so.

``bbio.c`` is section IV of burst-buffer coordination turned into checks, one scene for
each statement.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.live.node.launch.shim import shim_environment
from penstock.native.files import BUILT
from support.jobs import PROGRAMS, Job
from support.stages import Stage, scenes_of
from support.waiting import LIMIT_S

#: The library as the paper names it, without any variable of penstock.
_PRELOADED = {"LD_PRELOAD": str(BUILT / "libbbio_posix.so")}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program as a user does, with one folder for header and library."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    target = tmp_path_factory.mktemp("bbio") / "program"
    warnings = ("-Wall", "-Wextra", "-Wno-unused-result", "-Werror")
    places = (f"-I{BUILT}", f"-L{BUILT}")
    subprocess.run(
        ["gcc", *warnings, *places, PROGRAMS / "bbio.c", "-lbbio", "-o", target],
        check=True,
        timeout=LIMIT_S,
    )
    return target


@pytest.mark.parametrize("scene", sorted(scenes_of("bbio.c") - {"absent"}))
def test_a_statement_of_the_paper_holds(
    stage: Stage, program: Path, scene: str
) -> None:
    if scene == "init_in_memory" and not os.access("/dev/shm", os.W_OK):  # noqa: S108
        pytest.skip("needs /dev/shm")
    done = stage.run(program, scene, stage.journals, environment=_PRELOADED)
    assert (done.returncode, done.stderr) == (0, b"")
    at_end = scene == "called_at_the_end_of_the_program"
    assert done.stdout == (b"called\n" if at_end else b"")
    assert stage.left_over() == []


def test_without_the_preload_library_nothing_is_buffered(
    stage: Stage, program: Path
) -> None:
    done = stage.run(program, "absent", stage.journals, environment={})
    assert (done.returncode, done.stderr) == (0, b"")


def test_under_penstock_run_only_one_copy_of_the_library_acts(
    stage: Stage, job: Job, program: Path
) -> None:
    """Each byte is staged and counted once."""
    environment = shim_environment(job.page.path, [stage.folder], _PRELOADED)
    assert environment["LD_PRELOAD"].count(".so") == 2
    scene = "called_before_a_manual_flush"
    done = stage.run(program, scene, stage.journals, environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    staged = job.page.staged
    assert staged.absorbed_bytes == staged.drained_bytes == 5 * 5000
