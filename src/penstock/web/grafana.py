# SPDX-License-Identifier: MIT
"""A dashboard for Grafana and alerts for Prometheus, from the metrics of penstock.

``penstock serve --make-grafana FOLDER`` writes them. The names of the metrics are those
of `penstock.live.daemon.metrics`; a test compares them. Prometheus is expected to
scrape the daemon (``--metrics``) and the mounts under the job name ``penstock``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.files import replacing

__all__ = ["ALERTS", "PANELS", "AlertRule", "GrafanaPanel", "make_grafana"]

_SCHEMA: Final = 39
_WIDTH, _HEIGHT = 12, 8
_COLUMNS: Final = 2


@dataclass(frozen=True, slots=True)
class GrafanaPanel:
    """One graph of the dashboard."""

    title: str
    unit: str
    """As Grafana names it: Bps is bytes per second."""
    queries: dict[str, str]
    """Legend -> query."""
    is_stacked: bool = False


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One alert of Prometheus."""

    name: str
    query: str
    lasts: str
    """For how long the query must hold."""
    severity: str
    summary: str


PANELS: Final = (
    GrafanaPanel(
        "Who has which share",
        "Bps",
        {
            "{{name}}": "sum by (name) (penstock_job_achieved_bytes_per_second)",
            "shared": "max(penstock_bandwidth_bytes_per_second)",
        },
        is_stacked=True,
    ),
    GrafanaPanel(
        "What jobs would draw without control",
        "Bps",
        {"{{name}}": "sum by (name) (penstock_job_demanded_bytes_per_second)"},
        is_stacked=True,
    ),
    GrafanaPanel(
        "Lowest yields",
        "percentunit",
        {"{{name}}": "bottomk(10, min by (name) (penstock_job_yield))"},
    ),
    GrafanaPanel(
        "Time that calls are held up, added over processes",
        "s",
        {"{{name}}": "sum by (name) (rate(penstock_job_held_up_seconds_total[5m]))"},
        is_stacked=True,
    ),
    GrafanaPanel(
        "Jobs",
        "none",
        {"jobs": "sum(penstock_jobs)", "in I/O": "sum(penstock_job_active)"},
    ),
    GrafanaPanel(
        "Decisions per second",
        "ops",
        {"decisions": "sum(rate(penstock_decisions_total[1m]))"},
    ),
    GrafanaPanel(
        "Staged, not in the files yet",
        "bytes",
        {"{{name}}": "sum by (name) (penstock_job_staged_bytes)"},
        is_stacked=True,
    ),
    GrafanaPanel(
        "Written without control",
        "Bps",
        {"{{name}}": "sum by (name) (rate(penstock_job_uncontrolled_bytes_total[5m]))"},
    ),
    GrafanaPanel(
        "Learnt bandwidth",
        "Bps",
        {
            "{{storage}} {{kind}}": "max by (storage, kind) "
            "(penstock_learnt_bandwidth_bytes_per_second)"
        },
    ),
    GrafanaPanel(
        "Mounts: windows in which a promise was missed",
        "percentunit",
        {
            "{{mount}} {{application}}": "1 - "
            "rate(penstock_application_kept_windows_total[5m]) / "
            "rate(penstock_application_windows_total[5m])"
        },
    ),
    GrafanaPanel(
        "Mounts: response times, 95th percentile and promise",
        "s",
        {
            "{{mount}} {{application}}": "penstock_application_p95_seconds",
            "promise to {{application}}": "penstock_application_promised_seconds",
        },
    ),
)

ALERTS: Final = (
    AlertRule(
        "PenstockDown",
        'up{job="penstock"} == 0',
        "1m",
        "critical",
        "penstock at {{ $labels.instance }} does not answer: jobs run without control.",
    ),
    AlertRule(
        "PenstockSwitchedOff",
        'penstock_control_info{mode="off"} == 1',
        "1h",
        "warning",
        "Control has been switched off for an hour on {{ $labels.instance }}.",
    ),
    AlertRule(
        "PenstockJobWaits",
        "penstock_job_active == 1 and penstock_job_granted_bytes_per_second == 0",
        "10m",
        "warning",
        "Job {{ $labels.name }} of user {{ $labels.user }} has waited for 10 minutes: "
        "see penstock ctl explain.",
    ),
    AlertRule(
        "PenstockLowYield",
        "penstock_job_yield < 0.5",
        "30m",
        "info",
        "Job {{ $labels.name }} of user {{ $labels.user }} loses more than half of its "
        "time to control.",
    ),
    AlertRule(
        "PenstockUncontrolled",
        "rate(penstock_job_uncontrolled_bytes_total[5m]) > 1e6 and "
        "rate(penstock_job_uncontrolled_bytes_total[5m]) > "
        "0.5 * rate(penstock_job_moved_bytes_total[5m])",
        "15m",
        "info",
        "Job {{ $labels.name }} of user {{ $labels.user }} writes much without "
        "control: see penstock check.",
    ),
    AlertRule(
        "PenstockPromiseMissed",
        "1 - rate(penstock_application_kept_windows_total[10m]) / "
        "rate(penstock_application_windows_total[10m]) > 0.05",
        "10m",
        "warning",
        "The latency that is promised to {{ $labels.application }} at "
        "{{ $labels.mount }} was missed in more than 5 % of the windows.",
    ),
)


def make_grafana(folder: Path) -> list[Path]:
    """Write the dashboard and the alerts to a folder; return the files.

    Raises `InputError` if a file has the name of the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "is not a folder",
            where=str(folder),
            remedy="name a folder; it is made if it is not there",
        )
    texts = {
        folder / "penstock-dashboard.json": f"{json.dumps(_dashboard(), indent=1)}\n",
        folder / "penstock-alerts.yml": _alert_file(),
    }
    for path, text in texts.items():
        with replacing(path) as stream:
            stream.write(text.encode())
    return list(texts)


def _dashboard() -> dict[str, Any]:
    return {
        "title": "penstock",
        "uid": "penstock",
        "schemaVersion": _SCHEMA,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus"},
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: GrafanaPanel) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    row, column = divmod(number, _COLUMNS)
    mode = "normal" if panel.is_stacked else "none"
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {
            "x": column * _WIDTH,
            "y": row * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {
                    "fillOpacity": 60 if panel.is_stacked else 0,
                    "stacking": {"mode": mode},
                },
            },
            "overrides": [_LINE] if panel.is_stacked else [],
        },
        "targets": [
            {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend,
             "datasource": source}
            for at, (legend, query) in enumerate(panel.queries.items())
        ],
    }  # fmt: skip


#: The shared bandwidth is a line above the stack, not a part of it.
_LINE: Final = {
    "matcher": {"id": "byName", "options": "shared"},
    "properties": [
        {"id": "custom.stacking", "value": {"mode": "none"}},
        {"id": "custom.fillOpacity", "value": 0},
    ],
}


def _alert_file() -> str:
    """Return the alerts as YAML; a text in JSON is a text in YAML, too."""
    lines = ["groups:", "  - name: penstock", "    rules:"]
    for rule in ALERTS:
        lines += [
            f"      - alert: {rule.name}",
            f"        expr: {json.dumps(rule.query)}",
            f"        for: {rule.lasts}",
            "        labels:",
            f"          severity: {rule.severity}",
            "        annotations:",
            f"          summary: {json.dumps(rule.summary)}",
        ]
    return "\n".join(lines) + "\n"
