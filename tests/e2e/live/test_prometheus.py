# SPDX-License-Identifier: MIT
"""Every query of the dashboard and of the alerts, in a real Prometheus."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.web.grafana import ALERTS, PANELS, make_grafana
from support.daemons import Daemon
from support.pages import free_port
from support.waiting import LIMIT_S, until

_CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["{target}"]}}]
"""
#: Metrics of mounts and of learnt bandwidths, which this daemon has not.
_ABSENT = ("penstock_application_", "penstock_learnt_")


def _get(port: int, path: str, **parameters: str) -> Any:
    query = urllib.parse.urlencode(parameters)
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{query}"
    with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
        document = json.load(answer)
    assert document["status"] == "success", document
    return document["data"]


@contextmanager
def _prometheus(program: str, folder: Path, target: str) -> Iterator[int]:
    """Return the port of a Prometheus that scrapes an address every second."""
    _, rules = make_grafana(folder)
    configuration = folder / "prometheus.yml"
    configuration.write_text(_CONFIGURATION.format(rules=rules, target=target))
    port = free_port()
    command = [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _has_rates(port: int) -> bool:
    """Return True if Prometheus has scraped often enough for rates."""
    try:
        query = "rate(penstock_job_moved_bytes_total[5m]) > 0"
        return bool(_get(port, "query", query=query)["result"])
    except OSError:  # it starts
        return False


def test_every_query_in_a_real_prometheus(tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus")
    target = f"127.0.0.1:{free_port()}"
    daemon = Daemon(tmp_path / "daemon", metrics=target)
    try:
        daemon.start()
        daemon.write("climate")
        (tmp_path / "prometheus").mkdir()
        with _prometheus(program, tmp_path / "prometheus", target) as port:
            until(lambda: _has_rates(port))
            for panel in PANELS:
                for query in panel.queries.values():
                    result = _get(port, "query", query=query)["result"]
                    if not any(name in query for name in _ABSENT):
                        assert result, query
            (group,) = _get(port, "rules")["groups"]
            assert [rule["name"] for rule in group["rules"]] == [
                rule.name for rule in ALERTS
            ]
            until(lambda: _all_evaluated(port))
    finally:
        daemon.close()


def _all_evaluated(port: int) -> bool:
    """Return True if Prometheus has evaluated all alerts; none may be wrong."""
    (group,) = _get(port, "rules")["groups"]
    assert not any(rule.get("lastError") for rule in group["rules"])
    return all(rule["health"] == "ok" for rule in group["rules"])
