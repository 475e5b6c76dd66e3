# SPDX-License-Identifier: MIT
"""Errors: messages, nested places, pickling, and the tree that errors.py draws."""

from __future__ import annotations

import ast
import builtins
import importlib
import pickle
import re
from pathlib import Path

import pytest

import penstock
from penstock import errors
from penstock.errors import (
    InputError,
    InternalError,
    MissingExtraError,
    PenstockError,
    PolicyError,
    UnavailableError,
    UnknownNameError,
    plain_mismatch,
    reason_of,
)

PACKAGE = Path(penstock.__file__).parent
_BRANCH = re.compile(
    r"^\s*(?P<lines>[│├└─ ]*)(?P<name>\w+Error)\b.*?(?:\((?P<module>[\w.]+)\))?$"
)


def _drawn_tree() -> dict[str, tuple[str | None, str]]:
    """Return what errors.py draws: class -> (base class, module)."""
    drawing = (errors.__doc__ or "").partition("::\n\n")[2].partition("\n\n")[0]
    tree: dict[str, tuple[str | None, str]] = {}
    path: list[str] = []
    for line in drawing.splitlines():
        branch = _BRANCH.match(line)
        assert branch, f"not a line of the tree: {line!r}"
        depth = len(branch["lines"]) // 4
        del path[depth:]
        base = path[-1] if path else None
        tree[branch["name"]] = (base, branch["module"] or "errors")
        path.append(branch["name"])
    return tree


def _defined_tree() -> dict[str, tuple[str | None, str]]:
    """Return the exception classes in the syntax trees of the package."""
    classes: dict[str, tuple[list[str], str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                classes[node.name] = (bases, module.removesuffix(".__init__"))
    built_in = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    tree: dict[str, tuple[str | None, str]] = {}
    while True:
        known = built_in | tree.keys()
        more = {
            name: (next((b for b in bases if b in tree), None), module)
            for name, (bases, module) in classes.items()
            if name not in tree and known & set(bases)
        }
        if not more:
            return tree
        tree |= more


def _all_classes() -> list[type[PenstockError]]:
    """Return every exception class of the package, imported."""
    return [
        getattr(importlib.import_module(f"penstock.{module}"), name)
        for name, (_, module) in _drawn_tree().items()
    ]


def _example(kind: type[PenstockError]) -> PenstockError:
    """Return an error of `kind` with a fact; its place and remedy may be empty."""
    if kind is UnknownNameError:
        return UnknownNameError("policy", "fcsf", ["fcfs"])
    if kind is MissingExtraError:
        return MissingExtraError("numpy", "sim")
    if kind.__name__ == "SeveralJobsError":
        return kind("a", ["7:a", "8:a"])  # type: ignore[call-arg, arg-type]
    if kind.__name__ == "NoRowsError":
        return kind()  # type: ignore[call-arg]
    return kind("wrong", remedy="correct it")


def test_the_drawing_is_the_tree_of_all_exception_classes() -> None:
    assert _drawn_tree() == _defined_tree()


def test_every_exception_class_is_a_penstock_error() -> None:
    roots = {name for name, (base, _) in _defined_tree().items() if base is None}
    assert roots == {"PenstockError"}


def test_the_drawing_has_the_depths_that_python_sees() -> None:
    for kind, (base, _) in zip(_all_classes(), _drawn_tree().values(), strict=True):
        assert kind.__bases__[0].__name__ == (base or "Exception")


def test_not_now_is_not_never() -> None:
    assert not issubclass(UnavailableError, InputError)
    assert not issubclass(InputError, UnavailableError)
    assert not issubclass(PolicyError, InputError)


@pytest.mark.parametrize(
    ("where", "remedy", "message"),
    [
        ("", "", "-1 is negative"),
        ("a.json: nodes", "", "a.json: nodes: -1 is negative"),
        ("", "give 1", "-1 is negative (give 1)"),
        ("nodes", "give 1", "nodes: -1 is negative (give 1)"),
    ],
)
def test_message_has_place_fact_and_remedy(
    where: str, remedy: str, message: str
) -> None:
    for kind in (InputError, UnavailableError, PolicyError, InternalError):
        assert str(kind("-1 is negative", where=where, remedy=remedy)) == message


@pytest.mark.parametrize(
    ("prefix", "where", "place"),
    [
        ("applications[3]", "phases[7]", "applications[3].phases[7]"),
        ("window", "[0]", "window[0]"),
        ("applications[3]", "", "applications[3]"),
        ("a.json: ", "window[0]", "a.json: window[0]"),
        ("a.json: ", "", "a.json"),
    ],
)
def test_at_puts_the_place_inside_another(prefix: str, where: str, place: str) -> None:
    error = InputError("wrong", where=where, remedy="correct it").at(prefix)
    assert str(error) == f"{place}: wrong (correct it)"


def test_at_nests_several_times() -> None:
    error = InputError("wrong", where="phases[7]").at("applications[3]").at("a.json: ")
    assert str(error) == "a.json: applications[3].phases[7]: wrong"


def test_at_keeps_fact_and_remedy_apart() -> None:
    error = InputError("wrong", where="b", remedy="correct it").at("a")
    assert (error.what, error.where, error.remedy) == ("wrong", "a.b", "correct it")


@pytest.mark.parametrize("kind", _all_classes(), ids=lambda kind: kind.__name__)
def test_at_keeps_the_class(kind: type[PenstockError]) -> None:
    error = _example(kind)
    placed = error.at("a.json: ")
    assert type(placed) is kind
    assert str(placed) == f"a.json: {error}"
    assert (placed.what, placed.remedy) == (error.what, error.remedy)


@pytest.mark.parametrize("kind", _all_classes(), ids=lambda kind: kind.__name__)
def test_errors_come_back_from_a_worker_process_unchanged(
    kind: type[PenstockError],
) -> None:
    error = _example(kind).at("a.json: ")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_unknown_name_lists_the_known_sorted_and_the_nearest() -> None:
    error = UnknownNameError("policy", "fcsf", ["set-10", "fcfs"], where="here")
    assert str(error) == (
        "here: unknown policy 'fcsf' (did you mean 'fcfs'? known: fcfs, set-10)"
    )


def test_unknown_name_without_a_near_one() -> None:
    assert str(UnknownNameError("key", "zzz", ["a"])) == (
        "unknown key 'zzz' (known: a)"
    )
    assert "known: none" in str(UnknownNameError("key", "zzz", []))


def test_a_reason_is_on_one_line() -> None:
    assert reason_of(ValueError("one\n  two")) == "ValueError: one two"
    assert reason_of(KeyError("x")) == "KeyError: 'x'"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Expected `str` of length <= 200",
            "expected a text of at most 200 characters",
        ),
        ("Expected `str` of length >= 1", "expected a text that is not empty"),
        ("Expected `float` >= 0.0", "expected a number of at least 0"),
        (
            "Expected `int` >= 1, got `str`",
            "expected a whole number of at least 1, got a text",
        ),
        (
            "Expected `float | str`, got `array`",
            "expected a number or a text, got a list",
        ),
        (
            r"Expected `str` matching regex '\\A[^\\x00-\\x1f]+\\Z'",
            "expected a text without control characters",
        ),
        ("Object missing required field `latency`", "missing key latency"),
        ("Object contains unknown field `x`", "unknown key x"),
    ],
)
def test_what_decoders_expect_is_said_in_words(text: str, words: str) -> None:
    assert plain_mismatch(text) == words


def _broad_handlers() -> list[str]:
    """Return the files with a handler for everything, once per handler."""
    files = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                caught = (
                    "BaseException" if node.type is None else ast.unparse(node.type)
                )
                if {"Exception", "BaseException"} & set(re.findall(r"\w+", caught)):
                    files.append(str(path.relative_to(PACKAGE)))
    return files


def test_only_three_handlers_catch_everything() -> None:
    """Two edges of the process, and the one function that calls plug-ins."""
    assert _broad_handlers() == ["cli/__init__.py", "cli/live/run.py", "registry.py"]


def test_all_names_that_end_with_the_given_one_are_suggested() -> None:
    known = ("p1-fig2", "p2-fig2", "p2-fig12", "all")
    error = UnknownNameError("figure", "fig2", known)
    assert "did you mean 'p1-fig2' or 'p2-fig2'? known: " in str(error)


@pytest.mark.parametrize(
    ("module", "extra"),
    [("numpy", "sim"), ("polars.exceptions", "sim"), ("matplotlib", "plots")],
)
def test_a_missing_package_names_its_extra(module: str, extra: str) -> None:
    error = MissingExtraError.of(ModuleNotFoundError(name=module), where="compare")
    assert str(error) == (
        f"compare: the Python package {module.partition('.')[0]} is not installed "
        f"(pip install 'penstock[{extra}]')"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


@pytest.mark.parametrize("module", [None, "penstock.gone", "msgspec"])
def test_a_package_of_no_extra_is_a_bug(module: str | None) -> None:
    assert MissingExtraError.of(ModuleNotFoundError(name=module)) is None
