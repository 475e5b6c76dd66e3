# SPDX-License-Identifier: MIT
"""The design as a test: imports point downwards, and what no module may do."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import penstock
from penstock.experiments.runners import origin

ROOT = Path(penstock.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
C_FILES = sorted(ROOT.rglob("*.[ch]"))
TOP = "penstock"

#: Part of penstock -> the other parts that it may import.
_BASE = {
    *("errors", "files", "units", "registry", "kernels", "columns"),
    "kernel_text",
}
_DECISIONS = {"policies", "placement", "staging", "qos"}
_SIMULATION = {*_BASE, *_DECISIONS, "model", "workloads", "sim", "analysis"}
_LIVE = {
    *("native", "live.settings", "live.control", "live.wire", "live.staging"),
    *("live.node", "live.archive", "live.setting_values", "live.worker"),
    *("live.ending", "live.setting_checks"),
}
ALLOWED: dict[str, set[str]] = {
    TOP: {"errors"},
    "errors": set(),
    "files": {"errors"},
    "kernel_text": set(),
    "units": {"errors"},
    "program": {"errors", "units"},
    "registry": {"errors", "units"},
    "kernels": set(),
    "columns": {"kernels"},
    "native": {"errors"},
    "model": {"errors", "files", "units"},
    "policies": {"errors", "units", "registry", "kernels"},
    "placement": {"errors", "registry", "model"},
    "staging": {"errors", "registry"},
    "qos": {"errors", "units", "registry", "kernels", "columns"},
    "workloads": {"errors", "units", "kernels", "model", "placement"},
    "sim": {"errors", "kernels", "model", *_DECISIONS, "workloads"},
    "analysis": {"errors", "kernels", "model", "sim"},
    "live": set(),
    "live.setting_values": {"errors", "units"},
    "live.worker": set(),
    "live.ending": set(),
    "live.settings": {"errors", "live.setting_values"},
    "live.setting_checks": {
        *("errors", "staging", "live.settings", "live.setting_values"),
    },
    "live.control": {*_SIMULATION, "live.wire.messages"},
    "live.wire.messages": {"errors"},
    "live.wire": {
        *(*_BASE, TOP, "live.settings", "live.wire.messages", "live.worker"),
        "live.ending",
    },
    "live.archive": {
        *("errors", "units", "live.control", "live.wire.messages", "live.worker"),
        *("live.ending", "live.wire"),
    },
    "live.staging": {
        *(*_BASE, TOP, "native", "live.wire", "live.wire.messages", "live.ending"),
    },
    "live.node": {
        *(*_BASE, TOP, "native", "live.settings", "live.wire", "live.wire.messages"),
        *("live.staging", "live.worker"),
    },
    "live.daemon": {*_SIMULATION, TOP, *_LIVE, "live.wire.messages"},
    "mount": {
        *(TOP, "errors", "units", "qos", "native", "live.wire", "live.wire.messages"),
        *("live.worker", "kernel_text"),
    },
    "bench": {
        *_SIMULATION,
        *(TOP, *_LIVE, "live.daemon", "live.wire.messages", "mount", "advice"),
    },
    "experiments": {*_SIMULATION, TOP},
    "papers": {*_SIMULATION, TOP, "experiments"},
    # Printed results are the texts of the command line.
    "api": {*_SIMULATION, TOP, "experiments", "advice", "cli"},
    "advice": {
        *(_SIMULATION | {TOP, "experiments"}),
        *("live.archive", "live.control", "live.wire.messages"),
    },
    "web": {
        *("errors", "files", "units", "mount", "model", "policies", "sim", "analysis"),
        "advice",
        *("live.wire", "live.wire.messages", "live.daemon", "live.archive"),
        "live.control",
    },
    "cli": {
        *(_SIMULATION | _LIVE),
        *(TOP, "program", "live.daemon", "live.wire.messages", "mount", "bench"),
        *("experiments", "papers", "advice", "web"),
    },
    "__main__": {"cli"},
}
#: Parts whose names the top offers; it imports them when somebody asks for a name.
OFFERED = {"program", "api"}
#: Packages whose decisions must not depend on the world around them.
PURE = ("policies", "placement", "staging", "qos", "live.control")
#: What such a package must not import: clocks, files, sockets, processes, randomness.
IMPURE_MODULES = {
    *("asyncio", "ctypes", "datetime", "fcntl", "io", "logging", "mmap", "os"),
    *("pathlib", "random", "resource", "secrets", "select", "selectors", "shutil"),
    *("signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile"),
    *("threading", "time", "urllib", "uuid", "zmq"),
}
#: Built-in functions that reach outside the process.
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "breakpoint"}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _part(path: Path) -> str:
    """Return the part of penstock that a file belongs to: the longest name listed."""
    words = path.relative_to(ROOT).with_suffix("").parts
    return _longest_part([word for word in words if word != "__init__"])


def _longest_part(words: Sequence[str]) -> str:
    for length in range(len(words), 0, -1):
        if (name := ".".join(words[:length])) in ALLOWED:
            return name
    return words[0] if words and words[0].islower() else TOP


def _imported_parts(tree: ast.AST) -> set[str]:
    """Return the parts of penstock that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == TOP:
            names |= {f"{TOP}.{a.name}" for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    own_names = [name.split(".") for name in names if name.split(".")[0] == TOP]
    parts = {_longest_part(name[1:]) for name in own_names}
    return {part if part in ALLOWED else TOP for part in parts}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_imports_point_downwards_only() -> None:
    for path in FILES:
        part = _part(path)
        assert part in ALLOWED, f"a new part of penstock: give {part} a layer here"
        allowed = ALLOWED[part] | (OFFERED if part == TOP else set())
        assert _imported_parts(_tree(path)) - {part} <= allowed, _name(path)


def test_decisions_are_pure() -> None:
    for path in FILES:
        if _part(path) in PURE:
            _check_purity(path)


def _check_purity(path: Path) -> None:
    """Read the syntax tree: no clock, no socket, no file, no process, no randomness."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            roots = {alias.name.split(".")[0] for alias in node.names}
            assert not roots & IMPURE_MODULES, _name(path)
        if isinstance(node, ast.ImportFrom) and node.module:
            root = node.module.split(".")[0]
            assert root not in IMPURE_MODULES, _name(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_CALLS, _name(path)


def test_the_check_for_purity_finds_something() -> None:
    impure = ROOT / "live" / "daemon" / "control_loop.py"
    with pytest.raises(AssertionError):
        _check_purity(impure)


def test_a_class_name_exists_once() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(_name(path))
    assert {name: at for name, at in places.items() if len(at) > 1} == {}


def test_every_folder_says_its_purpose_in_one_sentence() -> None:
    for folder in sorted({path.parent for path in FILES}):
        summary = ast.get_docstring(_tree(folder / "__init__.py")) or ""
        first = summary.split("\n\n")[0]
        assert first.endswith("."), folder
        assert "\n" not in first, folder


def test_no_row_of_a_study_depends_on_unrelated_folders() -> None:
    """An edit there must not change rows: the origin of results leaves them out."""
    unrelated = origin._UNRELATED - {"__pycache__"}
    for part in _reachable({"experiments", "papers"}):
        assert part.split(".")[0] not in unrelated


def _reachable(parts: set[str]) -> set[str]:
    """Return the parts that may be imported from `parts`, directly or indirectly."""
    wider = parts.union(*(ALLOWED[part] for part in parts))
    return wider if wider == parts else _reachable(wider)


def test_lines_of_c_have_at_most_88_columns() -> None:
    """Comments too, which clang-format leaves alone; tables it must not format may."""
    for path in C_FILES:
        is_formatted = True
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "clang-format o" in line:
                is_formatted = "clang-format on" in line
            assert len(line) <= 88 or not is_formatted, f"{path}:{number}"


def test_the_layers_have_no_cycle() -> None:
    left = {part: set(below) for part, below in ALLOWED.items()}
    while left:
        free = {part for part, below in left.items() if not below & left.keys()}
        assert free, f"a cycle among {sorted(left)}"
        left = {part: below for part, below in left.items() if part not in free}


def test_no_module_prints_or_uses_global_randomness() -> None:
    for path in FILES:
        for node in ast.walk(_tree(path)):
            assert not _prints_or_draws(node), f"{path}:{getattr(node, 'lineno', 0)}"


def _prints_or_draws(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"print", "breakpoint", "eval", "exec"}
    if isinstance(node, ast.Import):
        return "random" in {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        allowed = {"Generator", "SeedSequence", "default_rng"}
        drawn = {alias.name for alias in node.names} - allowed
        return node.module == "random" or (
            node.module == "numpy.random" and drawn != set()
        )
    if isinstance(node, ast.Attribute) and node.attr == "random":
        return isinstance(node.value, ast.Name) and node.value.id == "np"
    return False


def test_every_file_has_a_licence_and_a_docstring() -> None:
    for path in FILES:
        licence = "# SPDX-License-Identifier: MIT\n"
        assert path.read_text().startswith(licence), path
        assert ast.get_docstring(_tree(path)), path


def test_everything_exported_exists_and_everything_public_is_exported() -> None:
    for path in FILES:
        relative = path.relative_to(ROOT).with_suffix("")
        name = ".".join([TOP, *relative.parts]).removesuffix(".__init__")
        # The engine's kernels are one program, cut into functions; only `run` and
        # `start` are for others.
        if not name.endswith("__main__"):
            _check_exports(name, path, all_public=name != "penstock.sim.engine")


def _check_exports(name: str, path: Path, *, all_public: bool) -> None:
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", []))
    assert len(set(exported)) == len(exported), name
    for member in exported:
        assert hasattr(module, member), f"{name}.{member}"
    public = {
        node.name
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    }
    assert public <= set(exported) or not all_public, name


_IMPORTS = """
import sys
from penstock.cli import main
status = main({arguments!r})
heavy = {{"numba", "numpy", "scipy", "matplotlib"}} & set(sys.modules)
sys.exit(f"status {{status}}, imports {{heavy}}" if heavy or status else 0)
"""


@pytest.mark.parametrize("arguments", [["policies"], ["compare", "--policy", "help"]])
def test_listing_the_policies_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS.format(arguments=arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fcfs" in done.stdout


_COMPARE = """
import sys
from penstock.cli import main
status = main(["compare", sys.argv[1], "--policy", "fcfs", "--policy", "fair-share"])
unused = {"scipy.special", "scipy.linalg", "polars", "matplotlib", "zmq", "asyncio"}
unused = unused & set(sys.modules)
sys.exit(f"status {status}, imports {unused}" if unused or status else 0)
"""


def test_a_comparison_imports_only_what_it_uses() -> None:
    """Once compiled: Numba's compiler itself imports scipy.linalg."""
    example = str(ROOT.parents[1] / "examples" / "three.json")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _COMPARE, example],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
