# SPDX-License-Identifier: MIT
"""Every query of the dashboard and of the alerts, in a real Prometheus."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.web.grafana import ALERTS, PANELS, make_grafana
from support.daemons import WRITER, Daemon
from support.mounts import Mounted, why_no_mounts
from support.pages import free_port
from support.waiting import LIMIT_S, until

_CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: {targets}}}]
"""
#: Beginnings of the metrics of learnt bandwidths, which this daemon has not, and of
#: mounts, which not every machine allows.
_LEARNT, _OF_MOUNTS = "penstock_learnt_", "penstock_application_"
_SLO = """
scheduler = "two-level"
default = "bulk"
[applications.bulk]
throughput = "10 MB/s"
latency = "1 s"
"""


def _get(port: int, path: str, **parameters: str) -> Any:
    query = urllib.parse.urlencode(parameters)
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{query}"
    with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
        document = json.load(answer)
    assert document["status"] == "success", document
    return document["data"]


@contextmanager
def _prometheus(program: str, folder: Path, targets: list[str]) -> Iterator[int]:
    """Return the port of a Prometheus that scrapes addresses every second."""
    _, rules = make_grafana(folder)
    configuration = folder / "prometheus.yml"
    text = _CONFIGURATION.format(rules=rules, targets=json.dumps(targets))
    configuration.write_text(text)
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


def _answers(port: int, query: str) -> bool:
    """Return True if Prometheus has a result, e.g. has scraped often enough for it."""
    try:
        return bool(_get(port, "query", query=query)["result"])
    except OSError:  # it starts
        return False


@contextmanager
def _writer_at_a_mount(folder: Path) -> Iterator[list[str]]:
    """Write to a mount with a promise; yield the addresses of its metrics, if any."""
    if why_no_mounts():
        yield []
        return
    mounted = Mounted(folder)
    (folder / "slo.toml").write_text(_SLO)
    address = f"127.0.0.1:{free_port()}"
    writer = None
    try:
        mounted.start(
            "--limit=20MB/s", f"--slo={folder / 'slo.toml'}", f"--metrics={address}"
        )
        command = [sys.executable, "-c", WRITER, str(mounted.point / "file"), "100000"]
        writer = subprocess.Popen(command)
        yield [address]
    finally:
        if writer is not None:
            writer.kill()
            writer.wait(LIMIT_S)
        mounted.end()


def test_every_query_in_a_real_prometheus(tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus")
    target = f"127.0.0.1:{free_port()}"
    daemon = Daemon(tmp_path / "daemon", metrics=target)
    (tmp_path / "prometheus").mkdir()
    try:
        daemon.start()
        daemon.write("climate")
        with (
            _writer_at_a_mount(tmp_path / "mount") as mounts,
            _prometheus(program, tmp_path / "prometheus", [target, *mounts]) as port,
        ):
            until(lambda: _answers(port, "up == 1"))
            absent = (_LEARNT,) if mounts else (_LEARNT, _OF_MOUNTS)
            for panel in PANELS:
                for query in panel.queries.values():
                    if not any(name in query for name in absent):
                        until(partial(_answers, port, query))
                    else:
                        _get(port, "query", query=query)
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
