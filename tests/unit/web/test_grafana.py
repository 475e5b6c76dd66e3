# SPDX-License-Identifier: MIT
"""The files for Grafana and Prometheus name metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock.errors import InputError
from penstock.live.daemon.metrics import MountCollector, render_jobs
from penstock.web.grafana import ALERTS, PANELS, make_grafana
from support.statuses import job_line, status_of
from support.waiting import LIMIT_S

QUERIES = [
    *(query for panel in PANELS for query in panel.queries.values()),
    *(rule.query for rule in ALERTS),
]


def _mount() -> dict[str, Any]:
    application = dict.fromkeys(
        (
            *("throughput", "latency", "bytes_per_s", "p95_s", "queued"),
            *("requests", "bytes", "windows", "kept", "operations"),
            "queued_operations",
        ),
        1.0,
    )
    order = {
        "depth": 4,
        "outstanding": 1,
        "applications": [{"name": "a", **application}],
    }
    moved = {"bytes": 1}
    return {"point": "/m", "read": moved, "write": moved, "waiting": 0, "order": order}


def _published() -> dict[str, set[str]]:
    """Return the labels of all metrics that the daemon and a mount publish."""
    registry = CollectorRegistry()
    registry.register(MountCollector(_mount))
    text = render_jobs(status_of(job_line())) + generate_latest(registry).decode()
    # Without a learnt bandwidth there is no sample of it.
    text += 'penstock_learnt_bandwidth_bytes_per_second{storage="s",kind="k"} 1\n'
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if match := re.match(r"(penstock_\w+)(?:\{(.*)\})? ", line):
            labels = re.findall(r'(\w+)="', match[2] or "")
            found[match[1]] = set(labels) | {"instance"}
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_names_published_metrics(query: str) -> None:
    names = set(re.findall(r"penstock_\w+", query))
    assert names <= _published().keys()
    assert names or "up{" in query


def test_every_legend_names_labels_that_the_query_keeps() -> None:
    published = _published()
    for panel in PANELS:
        for legend, query in panel.queries.items():
            (by,) = re.findall(r"by \(([\w, ]*)\)", query) or [None]
            (metric, *_) = re.findall(r"penstock_\w+", query)
            kept = set(by.split(", ")) if by else published[metric]
            assert set(re.findall(r"{{(\w+)}}", legend)) <= kept
            assert kept - {"instance"} <= published[metric]


def test_every_alert_names_labels_of_its_metric() -> None:
    published = _published()
    for rule in ALERTS:
        metrics = re.findall(r"penstock_\w+", rule.query)
        labels = published[metrics[0]] if metrics else {"instance", "job"}
        assert set(re.findall(r"\$labels\.(\w+)", rule.summary)) <= labels


def test_the_dashboard(tmp_path: Path) -> None:
    path, _ = make_grafana(tmp_path / "new")
    dashboard = json.loads(path.read_text())
    assert [panel["title"] for panel in dashboard["panels"]] == [
        panel.title for panel in PANELS
    ]
    places = [
        (each["gridPos"]["x"], each["gridPos"]["y"]) for each in dashboard["panels"]
    ]
    assert len(set(places)) == len(PANELS)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(PANELS)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("important")
    with pytest.raises(InputError, match=r"file: is not a folder .name a folder"):
        make_grafana(path)
    assert path.read_text() == "important"


def test_prometheus_accepts_the_alerts(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool (package prometheus)")
    _, path = make_grafana(tmp_path)
    done = subprocess.run(
        [tool, "check", "rules", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout
