# SPDX-License-Identifier: MIT
"""The base install: small, enough for live control, clear about what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.native.files import BUILT
from support.base_install import BaseInstall, size_bytes

#: Packages that a node must not need.
HEAVY = {"numpy", "numba", "llvmlite", "scipy", "polars", "matplotlib", "pandas"}
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "three.json")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseInstall:
    """Return an environment in which only the base is installed."""
    return BaseInstall(tmp_path_factory.mktemp("base") / "venv")


def test_the_base_takes_less_than_40_megabytes(base: BaseInstall) -> None:
    package = Path(penstock.__file__).parent
    sources = [f for f in package.rglob("*") if f.suffix in {".py", ".csv", ".h"}]
    # Bytecode takes about as much as the sources.
    own_bytes = 2 * size_bytes(sources) + size_bytes([BUILT])
    assert base.size_bytes() + own_bytes < 40 * 10**6
    assert not HEAVY & {name.lower() for name in base.names()}


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["compare", EXAMPLE], "numpy", "sim"),
        (["compare", EXAMPLE, "--plot=x.svg"], "numpy", "plots"),
        (["bound", EXAMPLE], "numpy", "sim"),
        (["generate", "synthetic"], "numpy", "sim"),
        (["advise", EXAMPLE], "numpy", "sim"),
        (["place", EXAMPLE], "numpy", "sim"),
        (["import", EXAMPLE], "numpy", "import"),
        (["reproduce", "p1-fig2"], "polars", "plots"),
        (["bench", "decisions"], "numpy", "sim"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_names_the_extra_that_it_needs(
    base: BaseInstall, tmp_path: Path, arguments: list[str], package: str, extra: str
) -> None:
    done = base.run("-m", "penstock", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"penstock: {arguments[0]}: the Python package {package} is not installed "
        f"(pip install 'penstock[{extra}]')\n"
    )


def test_python_names_the_extra_too(base: BaseInstall, tmp_path: Path) -> None:
    code = """
import penstock as ps
with ps.phase(volume=1): pass
assert issubclass(ps.MissingExtraError, ps.InputError)
try:
    ps.compare
except ps.PenstockError as error:
    print(error)
"""
    done = base.run("-c", code, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout == (
        "penstock.compare: the Python package numpy is not installed "
        "(pip install 'penstock[sim]')\n"
    )


@pytest.mark.parametrize("name", ["settings", "slo", "status", "history"])
def test_schemas_of_live_control_need_no_extra(
    base: BaseInstall, tmp_path: Path, name: str
) -> None:
    done = base.run("-m", "penstock", "schema", name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mount_with_promises_names_the_extra(
    base: BaseInstall, tmp_path: Path
) -> None:
    for name in ("data", "mnt"):
        (tmp_path / name).mkdir()
    slo = str(Path(EXAMPLE).with_name("slo.toml"))
    done = base.run(
        *("-m", "penstock", "mount", "data", "mnt", "--slo", slo), cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.endswith("(pip install 'penstock[sim]')\n")


def _shell(base: BaseInstall, folder: Path, script: str) -> tuple[int, str, str]:
    """Run a shell script in which ``$penstock`` is the command of the base."""
    script = f"penstock='{base.python} -m penstock'\n{script}"
    done = base.run(
        *("-c", "import os, sys; os.execvp('sh', ['sh', '-c', sys.argv[1]])", script),
        cwd=folder,
        PENSTOCK_FOLDER=str(folder / "run"),
        PENSTOCK_LINGER="1 s",
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_runs_under_control(base: BaseInstall, tmp_path: Path) -> None:
    script = """
cat > program <<END
dd if=/dev/zero of=file bs=1M count=8 status=none
until $penstock ctl status --json - | grep -q '"moved": 8388608'; do sleep 0.1; done
END
$penstock run --job writer -- sh program
"""
    assert _shell(base, tmp_path, script) == (0, "", "")


def test_a_controller_says_that_its_policies_are_interpreted(
    base: BaseInstall, tmp_path: Path
) -> None:
    script = """
$penstock serve --bandwidth "8 MB/s" --linger 0 2> log &
until $penstock ctl status > /dev/null 2>&1; do sleep 0.1; done
$penstock ctl policy soft-deadline
kill $!; wait $!
grep -o "pip install .*" log
"""
    assert _shell(base, tmp_path, script) == (
        *(0, "soft-deadline decides\npip install 'penstock[controller]')\n", ""),
    )
