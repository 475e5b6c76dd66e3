# SPDX-License-Identifier: MIT
"""What is uncertain depends on what the logs tell."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from penstock.advice.evidence import of_instances, of_logs
from penstock.advice.importing.importer import ImportOptions, import_logs
from penstock.advice.importing.instances import Assumptions
from support.archives import operation, record, run
from unit.samples import pair

SACCT = (
    "JobID|JobName|NNodes|Start|End|Elapsed|ElapsedRaw|State|User|Account|"
    "TRESUsageInTot|TRESUsageOutTot\n"
)
INTERVALS = (
    "job,nodes,begin,end,bytes\n"
    "a,1,0,1,1000000\na,1,5,6,1000000\nb,1,0,2,1000000\nb,1,5,7,1000000\n"
)


def test_instances_are_taken_as_they_are() -> None:
    evidence = of_instances([pair()], None)
    assert [one.digest() for one in evidence.instances] == [pair().digest()]
    assert evidence.operations == 2
    assert evidence.uncertainty.bandwidth == 0.0
    assert "that of the instance" in evidence.notes[0]


def test_a_given_bandwidth_replaces_that_of_the_instances() -> None:
    evidence = of_instances([pair()], 7.0)
    assert evidence.instances[0].platform.bandwidth == 7.0
    assert "(given)" in evidence.notes[0]


@pytest.fixture
def intervals(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(INTERVALS)
    return str(path)


def test_every_access_leaves_little_doubt(intervals: str) -> None:
    given = ImportOptions(assumptions=Assumptions(bandwidth=2e6))
    evidence = of_logs(import_logs([intervals], given), scenarios=20, seed=1)
    assert len(evidence.instances) == 1
    assert evidence.uncertainty.phases == 0.05
    assert evidence.uncertainty.bandwidth == 0.0
    assert evidence.operations == 4
    assert evidence.notes[:2] == (
        "2 jobs were imported with the detail dxt.",
        "The storage has a bandwidth of 2 MB/s (given).",
    )


def test_an_estimated_bandwidth_is_uncertain(intervals: str) -> None:
    evidence = of_logs(import_logs([intervals]), scenarios=20, seed=1)
    assert evidence.uncertainty.bandwidth > 0.0
    assert any("the storage may have more" in note for note in evidence.notes)


def test_totals_become_an_ensemble() -> None:
    path = str(Path(__file__).parents[3] / "examples" / "logs" / "sacct.txt")
    known = Assumptions(bandwidth=1e10, node_bandwidth=1e9)
    imported = import_logs([path], ImportOptions(assumptions=known))
    evidence = of_logs(imported, scenarios=20, seed=1)
    assert len(evidence.instances) == 10
    assert len({one.digest() for one in evidence.instances}) > 1
    assert evidence.uncertainty.phases == 0.3


@pytest.mark.parametrize(
    ("policy", "label", "source"),
    [
        ("fcfs", "fcfs", "that of the last job"),
        ("dry-run", "fair-share", "in a dry run"),
        ("gone-policy", "fair-share", "gone-policy, which is not known here"),
    ],
)
def test_the_policy_in_use_is_that_of_the_last_past_job(
    policy: str, label: str, source: str, tmp_path: Path
) -> None:
    first = run("7:a", policy="greedy-com", left_s=50.0)
    last = run("7:b", policy=policy, left_s=90.0)
    record(tmp_path, (first, [operation(1.0, 3.0)]), (last, [operation(2.0, 9.0)]))
    evidence = of_logs(import_logs([str(tmp_path)]), scenarios=3, seed=1)
    assert evidence.present.label == label
    assert source in evidence.present.source


def test_logs_do_not_tell_the_policy_in_use(intervals: str) -> None:
    evidence = of_logs(import_logs([intervals]), scenarios=3, seed=1)
    assert evidence.present.label == "fair-share"
    assert "without control" in evidence.present.source


@pytest.mark.parametrize(("capacity", "doubt"), [(1e9, 0.0), (inf, 0.3)])
def test_a_bandwidth_that_past_jobs_shared_is_known(
    capacity: float, doubt: float, tmp_path: Path
) -> None:
    done = operation(1.0, 3.0, capacity=capacity)
    record(tmp_path, (run(), [done]))
    evidence = of_logs(import_logs([str(tmp_path)]), scenarios=3, seed=1)
    assert evidence.uncertainty.bandwidth == doubt


def test_one_job_is_not_many(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 3.0)]))
    evidence = of_logs(import_logs([str(tmp_path)]), scenarios=3, seed=1)
    assert evidence.notes[0].startswith("1 job was imported")
