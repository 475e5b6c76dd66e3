# SPDX-License-Identifier: MIT
"""The page of a simulation: its data, its script and its content policy."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from penstock.web.view import bundle, policy_means, shown_instance, view_page
from support.waiting import LIMIT_S

NODE = shutil.which("node")


def outcome(min_yield: float, efficiency: float, **changes: Any) -> dict[str, Any]:
    return {
        "min_yield": min_yield,
        "efficiency": efficiency,
        "utilization": 0.5,
        "stretch": 1.5,
        "yields": [min_yield, 1.0],
    } | changes


def instance(index: int = 0, **policies: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": index,
        "pressure": 0.8,
        "bound": {"min_yield": 0.99, "method": "edf"},
        "applications": ["a", "b"],
        "policies": policies,
    }


def result(*instances: dict[str, Any]) -> dict[str, Any]:
    facts = {"version": "1.0", "command": "penstock compare"}
    return {"penstock": 1, "provenance": facts, "instances": list(instances)}


def test_policies_are_means_over_the_instances_best_first() -> None:
    first = instance(0, a=outcome(0.4, 0.9), b=outcome(0.8, 0.7))
    second = instance(1, a=outcome(0.6, 0.7), b=outcome(0.9, 0.9))
    b, a = policy_means([first, second])
    assert (a["policy"], a["min_yield"], a["efficiency"]) == ("a", 0.5, 0.8)
    assert (b["low"], b["high"]) == pytest.approx((0.81, 0.89))
    assert a["stretch"] == 1.5


def test_an_infinite_stretch_is_null() -> None:
    (row,) = policy_means([instance(a=outcome(0.4, 0.9, stretch=None))])
    assert row["stretch"] is None
    assert row["low"] == row["high"] == 0.4


def test_the_frontier_has_the_policies_that_no_other_exceeds_in_both() -> None:
    rows = policy_means(
        [
            instance(
                fair=outcome(0.9, 0.7),
                fast=outcome(0.7, 0.9),
                worse=outcome(0.7, 0.8),
                twin=outcome(0.9, 0.7),
            )
        ]
    )
    assert {row["policy"] for row in rows if row["frontier"]} == {
        "fair",
        "fast",
        "twin",
    }


def test_an_instance_without_a_file_has_a_number() -> None:
    shown = shown_instance(instance(3, a=outcome(0.5, 0.5)), "no timeline")
    assert (shown["name"], shown["note"]) == ("instance 3", "no timeline")
    assert shown["yields"] == {"a": [0.5, 1.0]}
    assert shown["bound"] == 0.99
    named = shown_instance(instance(3, a=outcome(0.5, 0.5)) | {"file": "x.json"})
    assert named["name"] == "x.json"


def test_without_all_bounds_there_is_no_mean_bound() -> None:
    unbounded = instance(1, a=outcome(0.5, 0.5)) | {"bound": None}
    page = view_page(result(instance(a=outcome(0.5, 0.5)), unbounded), [], "a")
    assert _data(page)["bound"] is None


def _data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def _page(name: str = "a") -> str:
    entry = instance(a=outcome(0.5, 0.5)) | {"applications": [name, "b"]}
    return view_page(result(entry), [shown_instance(entry)], "a")


def test_the_policy_of_the_page_allows_its_own_script_and_style_only() -> None:
    page = _page()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    for kind, tag in (("script", '<script type="module">'), ("style", "<style>")):
        text = page.partition(tag)[2].partition(f"</{kind}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_the_page_names_no_address() -> None:
    names = set(re.findall(r"\w+://[^\s\"'`]+", _page()))
    assert names == {"http://www.w3.org/2000/svg"}
    assert not re.search(r'(src|href)="', _page())


def test_names_cannot_end_the_data() -> None:
    name = "</script><script>alert(1)</script><!--"
    page = _page(name)
    assert "alert(1)</script>" not in page
    assert _data(page)["shown"][0]["applications"][0] == name


def test_all_that_a_module_imports_stands_before_it_once() -> None:
    script = bundle("view")
    order = re.findall(r"^const (\w+)_js = ", script, re.MULTILINE)
    assert order[-1] == "view"
    assert len(order) == len(set(order))
    assert order.index("dom") < order.index("stack") < order.index("picture")
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    assert "server" not in order


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_the_script_is_valid_and_exports_what_modules_export() -> None:
    script = bundle("stack") + "process.stdout.write(Object.keys(stack_js).join(' '));"
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-e", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    assert {"OTHERS", "Palette", "drawStack", "inkOn"} <= set(done.stdout.split())
