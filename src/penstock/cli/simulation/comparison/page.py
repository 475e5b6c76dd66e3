# SPDX-License-Identifier: MIT
"""Write the page of a result, for ``penstock view`` and ``penstock compare --view``.

A result has no timelines. They are simulated again, on the instance that the result
names: a file, or a workload with its settings and its seed. The instance must have the
digest of the result, and the policies must reach the same yields; otherwise the page
says why there is no timeline. So a timeline always belongs to the numbers beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError, PenstockError

if TYPE_CHECKING:
    from penstock.model import Instance
    from penstock.policies.policy import Policy

__all__ = ["check_page_name", "open_page", "write_view"]


def check_page_name(path: str | None) -> None:
    """Raise `InputError` if the name of a page does not end in ``.html``."""
    if path is not None and Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            "the page is an HTML file", where=path, remedy="give it the ending .html"
        )


def write_view(
    document: Mapping[str, Any],
    path: str,
    *,
    number: int = 0,
    policies: Sequence[Policy] | None = None,
) -> None:
    """Write the page of a result.

    Parameters
    ----------
    document
        The document of ``penstock compare --json``, valid.
    number
        The instance whose timelines are drawn.
    policies
        The policies of the result; None: find them by their names. Modules that only
        the result names are not imported: it may come from anybody.
    """
    from penstock.experiments.output.provenance import printable
    from penstock.files import replacing
    from penstock.policies import RECOMMENDED
    from penstock.web.view import MOST_SHOWN, shown_instance, view_page

    instances = document["instances"]
    if number >= len(instances):
        raise InputError(
            f"there is no instance {number}",
            where="--instance",
            remedy=f"the result has 0 to {len(instances) - 1}",
        )
    places = sorted({*range(min(MOST_SHOWN, len(instances))), number})
    chosen = _with_pictures(document, number, policies)
    _report_missing(chosen)
    note = f"only instance {number} has timelines (others: penstock view --instance N)"
    shown = [
        chosen if place == number else shown_instance(instances[place], note)
        for place in places
    ]
    # The instance with timelines is shown first.
    shown.sort(key=lambda each: each is not chosen)
    page = view_page(printable(document), printable(shown), RECOMMENDED)
    with replacing(path) as stream:
        stream.write(page.encode())


def _with_pictures(
    document: Mapping[str, Any], number: int, policies: Sequence[Policy] | None
) -> dict[str, Any]:
    """Return an instance in the form of the page, with timelines if possible."""
    from penstock.web.pictures.simulated import simulated_pictures
    from penstock.web.view import shown_instance

    entry = document["instances"][number]
    facts = document["provenance"]
    shown = shown_instance(entry)
    labels = list(entry["policies"])
    try:
        instance = _instance(entry, facts)
        found = [p for p in policies or _known(labels) if p.label in labels]
        shown["pictures"] = simulated_pictures(
            instance, found, shown["yields"], steady=not facts.get("open")
        )
    except PenstockError as error:
        shown["note"] = f"{error}."
        return shown
    shown["note"] = (
        "this version of penstock does not have the policy, or has changed it."
    )
    return shown


def _report_missing(shown: Mapping[str, Any]) -> None:
    """Report on the terminal which timelines are missing on the page, and why."""
    missing = [label for label in shown["yields"] if label not in shown["pictures"]]
    if missing:
        which = f" of {', '.join(missing)}" if shown["pictures"] else ""
        sys.stderr.write(f"the page has no timelines{which}: {shown['note']}\n")


def _instance(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> Instance:
    """Return the instance of a result; raise `InputError` if it is not at hand."""
    from penstock.experiments.source import FilePoint
    from penstock.workloads import get_workload

    if entry.get("file"):
        instance = FilePoint(entry["file"]).family().instance(0, 0)
    elif isinstance(facts.get("workload"), str):
        settings, seed = facts.get("settings"), facts.get("seed")
        if not isinstance(settings, list) or not isinstance(seed, int):
            raise InputError("the result does not say how its instance was drawn")
        family = get_workload(facts["workload"], [str(each) for each in settings])
        instance = family.instance(seed, entry["index"])
    else:
        raise InputError("the result does not say where its instance is from")
    if instance.digest() != entry["digest"]:
        raise InputError("the instance has changed since the result was computed")
    return instance


def _known(labels: Sequence[str]) -> list[Policy]:
    """Return those policies that are part of penstock or of an installed package."""
    from penstock.policies import get_policy
    from penstock.registry import name_in_label

    found = []
    for label in labels:
        if "." not in name_in_label(label):
            try:
                found.append(get_policy(label))
            except PenstockError:
                continue  # It has no timeline; the page says so.
    return found


def open_page(path: str) -> None:
    """Open a page in the browser of the desktop.

    Without a desktop, as on a login node, nothing is opened: a browser in the terminal
    could not show the page.
    """
    import webbrowser

    if not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        sys.stderr.write("there is no desktop here: copy the page to one\n")
    elif not webbrowser.open(Path(path).resolve().as_uri()):
        sys.stderr.write("there is no browser: open the page yourself\n")
