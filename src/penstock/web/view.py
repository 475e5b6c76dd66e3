# SPDX-License-Identifier: MIT
"""The page of a simulation: one HTML file with its data, for ``penstock view``.

The file has the modules of the live page that draw (`static/`), joined to one script by
`bundle`, the style, and the data. It needs no server and loads nothing: its content
policy allows only this script and this style, by their hashes.

Data of the page, JSON:

| key | content |
|---|---|
| ``made`` | version and command that made the result |
| ``instances`` | number of instances |
| ``pressure``, ``bound`` | means of the I/O pressure and of the bound, or null |
| ``recommended`` | the policy that is shown first |
| ``policies`` | means of each policy, the highest MinYield first |
| ``shown`` | the first instances, see `shown_instance` |
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any, Final

import msgspec

__all__ = ["MOST_SHOWN", "bundle", "policy_means", "shown_instance", "view_page"]

_STATIC: Final = Path(__file__).with_name("static")
#: Instances whose yields are in the page.
MOST_SHOWN: Final = 50
_IMPORT: Final = re.compile(r'^import \{([^}]+)\} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE
)


# --- Data -----------------------------------------------------------------------------


def policy_means(instances: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the means of each policy over the instances of a result.

    ``frontier`` is True if no other policy is at least as good in both MinYield and
    Efficiency, and better in one.
    """
    rows = [
        _means(policy, [each["policies"][policy] for each in instances])
        for policy in instances[0]["policies"]
    ]
    rows.sort(key=lambda row: -row["min_yield"])
    points = [(row["min_yield"], row["efficiency"]) for row in rows]
    for row, (fairness, efficiency) in zip(rows, points, strict=True):
        row["frontier"] = not any(
            other != (fairness, efficiency)
            and other[0] >= fairness
            and other[1] >= efficiency
            for other in points
        )
    return rows


def _means(policy: str, outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    min_yields = [each["min_yield"] for each in outcomes]
    low = high = min_yields[0]
    if len(min_yields) > 1:
        low, *_, high = quantiles(min_yields, n=10, method="inclusive")
    stretches = [each["stretch"] for each in outcomes]
    return {
        "policy": policy,
        "min_yield": fmean(min_yields),
        "low": low,
        "high": high,
        "efficiency": fmean(each["efficiency"] for each in outcomes),
        "utilization": fmean(each["utilization"] for each in outcomes),
        "stretch": None if None in stretches else fmean(stretches),
    }


def shown_instance(instance: Mapping[str, Any], note: str = "") -> dict[str, Any]:
    """Return an instance of a result in the form of the page, without pictures.

    ``yields`` and ``pictures`` are by policy; ``note``: why a policy has no picture.
    """
    policies = instance["policies"]
    bound = instance["bound"]
    return {
        "name": instance.get("file") or f"instance {instance['index']}",
        "bound": bound and bound["min_yield"],
        "applications": instance["applications"],
        "yields": {policy: each["yields"] for policy, each in policies.items()},
        "pictures": {},
        "note": note,
    }


def view_page(
    result: Mapping[str, Any], shown: Sequence[Mapping[str, Any]], recommended: str
) -> str:
    """Return the page of a result of ``penstock compare``.

    Parameters
    ----------
    result
        The document of ``penstock compare --json``.
    shown
        Instances in the form of `shown_instance`.
    recommended
        The policy that is shown first, if the result has it.
    """
    instances = result["instances"]
    bounds = [each["bound"] for each in instances]
    return _page(
        {
            "made": _made(result["provenance"]),
            "instances": len(instances),
            "pressure": fmean(each["pressure"] for each in instances),
            "bound": fmean(each["min_yield"] for each in bounds)
            if all(bounds)
            else None,
            "recommended": recommended,
            "policies": policy_means(instances),
            "shown": shown,
        }
    )


def _made(provenance: Mapping[str, Any]) -> str:
    """Return which version and command made a result, as far as it says so."""
    known = [
        str(provenance[key]) for key in ("version", "command") if key in provenance
    ]
    return f"penstock {': '.join(known)}" if known else ""


# --- Page -----------------------------------------------------------------------------


def bundle(name: str) -> str:
    """Return a module of the page and all that it imports as one script.

    Each module becomes a function that returns what the module exports. The modules
    import by names in braces, and export declarations: nothing else is understood.
    """
    return "".join(_functions(name, set()))


def _functions(name: str, done: set[str]) -> list[str]:
    """Return the modules that `name` needs and that are not done, then itself."""
    done.add(name)
    text = (_STATIC / f"{name}.js").read_text()
    parts: list[str] = []
    for _, needed in _IMPORT.findall(text):
        if needed not in done:
            parts += _functions(needed, done)
    body = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {found[2]}_js;", text)
    exported = ", ".join(_EXPORT.findall(body))
    body = _EXPORT.sub("", body)
    return [
        *parts,
        f"const {name}_js = (() => {{\n{body}return {{ {exported} }};\n}})();\n",
    ]


def _page(data: Mapping[str, Any]) -> str:
    style = (_STATIC / "style.css").read_text()
    script = bundle("view")
    # The page must not end in the middle of the data: in HTML, "<" begins an element.
    facts = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{style}</style>"
    )
    body = (
        f'<script type="application/json" id="data">{facts}</script>'
        f'<script type="module">{script}</script>'
    )
    page = (_STATIC / "view.html").read_text()
    return page.replace("<!-- head -->", head).replace("<!-- body -->", body)


def _hash(text: str) -> str:
    """Return the hash by which a content policy allows an element with this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
