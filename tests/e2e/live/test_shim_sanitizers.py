# SPDX-License-Identifier: MIT
"""The library under the sanitizers of addresses, undefined behaviour and threads."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass
from support.jobs import PROGRAMS, Job, compiled
from support.native_build import STRICT, build_variant
from support.sanitizers import ADDRESS_CHECKS, runtime
from support.stages import Stage

#: Scenes that end the process, or wait for a grant that no test here gives.
_LEFT_OUT = {"seccomp", "handler", "longjmp", "cancel"}


@pytest.fixture(scope="module")
def address_checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the libraries to preload: the runtimes and the instrumented library."""
    runtimes = (runtime("asan"), runtime("ubsan"))
    library = _checked_shim(tmp_path_factory.mktemp("asan"), *ADDRESS_CHECKS)
    return (*runtimes, str(library))


@pytest.fixture(scope="module")
def thread_checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library with the checks of threads."""
    runtime("tsan")
    return _checked_shim(tmp_path_factory.mktemp("tsan"), "-fsanitize=thread")


def _checked_shim(folder: Path, *checks: str) -> Path:
    flags = f"-DCMAKE_C_FLAGS=-g {' '.join(checks)}"
    return build_variant(folder, "shim", STRICT, flags, "-DPENSTOCK_LIBFUSE=none")


def _scenes() -> list[str]:
    text = (PROGRAMS / "calls.c").read_text()
    return [
        name for name in re.findall(r"SCENE\((\w+)\),", text) if name not in _LEFT_OUT
    ]


@pytest.mark.parametrize("scene", _scenes())
def test_no_wrapper_has_an_invalid_access(
    job: Job, calls: Path, address_checked: tuple[str, ...], scene: str
) -> None:
    expected = job.run(calls, scene, environment={}).stderr
    shutil.rmtree(job.folder)
    job.folder.mkdir()
    job.page.grant(1e8)
    environment = job.environment | {
        "LD_PRELOAD": ":".join(address_checked),
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:intercept_send=0",
    }
    done = job.run(calls, scene, environment=environment)
    assert (done.returncode, done.stderr) == (0, expected)


@pytest.mark.parametrize("scene", _scenes())
def test_no_staged_call_has_an_invalid_access(
    stage: Stage, calls: Path, address_checked: tuple[str, ...], scene: str
) -> None:
    expected = stage.run(calls, scene, environment={}).stderr
    stage.empty()
    environment = stage.environment(64 << 10) | {
        "LD_PRELOAD": ":".join(address_checked),
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:intercept_send=0",
    }
    done = stage.run(calls, scene, environment=environment)
    assert (done.returncode, done.stderr) == (0, expected)
    assert stage.left_over() == []


def test_staging_threads_do_not_race(
    stage: Stage, thread_checked: Path, tmp_path: Path
) -> None:
    stress = compiled(tmp_path / "threads", "threads.c", ("-fsanitize=thread",))
    environment = stage.environment(256 << 10) | {
        "LD_PRELOAD": str(thread_checked),
        # For symbols it would start a program in the middle of a report.
        "TSAN_OPTIONS": "halt_on_error=1:symbolize=0",
    }
    done = stage.run("setarch", "-R", stress, environment=environment)
    if b"unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert (done.returncode, done.stderr) == (0, b"")
    assert stage.left_over() == []


def test_threads_do_not_race(job: Job, thread_checked: Path, tmp_path: Path) -> None:
    stress = compiled(tmp_path / "stress", "stress.c", ("-fsanitize=thread",))
    job.page.grant(100e6)
    environment = job.environment | {
        "LD_PRELOAD": str(thread_checked),
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    # Without address randomisation, which older runtimes cannot handle.
    done = job.run("setarch", "-R", stress, environment=environment)
    if b"unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert (done.returncode, done.stderr) == (0, b"")
    counters = job.page.counters(IoClass.WRITE)
    assert counters.begun_calls == counters.ended_calls > 0
