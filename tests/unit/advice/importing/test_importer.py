# SPDX-License-Identifier: MIT
"""The import as a whole: many formats, one clock, everything bad named once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.advice.importing.importer import Imported, ImportOptions, import_logs
from penstock.advice.importing.instances import Assumptions
from penstock.errors import InputError
from penstock.model.files import instance_from_document
from support.darshan_logs import (
    LOGS,
    dxt_record,
    need_darshan,
    posix_record,
    write_log,
)

CSV = (
    "job,begin,end,bytes,nodes\n"
    "a,0,100,0,4\na,10,12,200,4\na,60,62,200,4\n"
    "b,5,80,0,2\nb,11,13,100,2\n"
)


def _csv(folder: Path) -> Path:
    path = folder / "jobs.csv"
    path.write_text(CSV)
    return path


def _import(*paths: Path, **options: object) -> Imported:
    chosen = ImportOptions(**options)  # type: ignore[arg-type]
    return import_logs([str(path) for path in paths], chosen)


def test_the_document_has_the_agreed_keys(tmp_path: Path) -> None:
    imported = _import(_csv(tmp_path))
    document = json.loads(json.dumps(imported.document()))
    assert document["penstock"] == 1
    keys = {
        *("name", "source", "detail", "nodes", "operations", "notes"),
        *("bytes_log", "bytes_instance", "io_seconds_log", "io_seconds_instance"),
    }
    assert [set(job) for job in document["jobs"]] == [keys, keys]
    instance = instance_from_document(document["instance"])
    assert instance.digest() == imported.instance.digest()


def test_jobs_of_one_file_are_on_one_clock(tmp_path: Path) -> None:
    imported = _import(_csv(tmp_path))
    assert [a.release for a in imported.instance.applications] == [0.0, 5.0]
    assert [job.bytes_instance for job in imported.jobs] == [400, 100]
    # Both do I/O from 11 s to 12 s: 100 B/s and 50 B/s.
    assert imported.instance.platform.bandwidth == pytest.approx(150.0)
    assert not imported.is_bandwidth_known


def test_real_darshan_logs() -> None:
    need_darshan()
    logs = [*LOGS.glob("*.darshan"), *LOGS.glob("*.jsonl")]
    imported = _import(*logs, assumptions=Assumptions(align=True))
    details = {Path(job.source).stem: job.detail for job in imported.jobs}
    assert details == {
        "skew-autobench-ior": "counters",
        "dlio-worker": "heatmap",
        "mpi-io-test-dxt": "dxt",
        "tmio_8ranks": "dxt",
    }
    for job in imported.jobs:
        assert job.bytes_instance == job.bytes_log
        assert job.io_seconds_instance == pytest.approx(job.io_seconds_log, rel=1e-6)
    assert len(imported.ensemble(3, seed=5)) == 3


def test_slurm_tells_the_nodes_of_a_darshan_log(tmp_path: Path) -> None:
    need_darshan()
    counters = posix_record(1, rank=0, written=(1000, 1.0, 3.0, 2.0))
    write_log(tmp_path / "a.darshan", modules=[counters], processes=128)
    start, end = 1_700_000_000 - 5, 1_700_000_000 + 200
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|User|Account|NNodes|Start|End|TRESUsageInTot|TRESUsageOutTot\n"
        f"4711|model|ann|geo|4|{start}|{end}|fs/disk=1|fs/disk=2\n"
        f"4712|other|ann|geo|2|{start}|{end}|fs/disk=1|fs/disk=2\n"
    )
    imported = _import(tmp_path)
    log, other = imported.jobs
    assert (log.detail, log.nodes, log.bytes_log) == ("counters", 4, 1000)
    assert "number of nodes from Slurm" in log.notes
    assert other.name == "other-4712"
    assert imported.instance.applications[0].user == "ann"


def test_clocks_that_cannot_be_compared(tmp_path: Path) -> None:
    need_darshan()
    counters = posix_record(1, written=(1000, 1.0, 3.0, 2.0))
    log = write_log(tmp_path / "a.darshan", modules=[counters])
    imported = _import(_csv(tmp_path), log)
    assert [Path(job.source).name for job in imported.jobs] == ["a.darshan"]
    assert ["clock" in item.reason for item in imported.skipped] == [True, True]
    together = _import(_csv(tmp_path), log, assumptions=Assumptions(align=True))
    assert len(together.jobs) == 3
    assert together.skipped == []


def _bad_folder(folder: Path) -> Path:
    """Make a folder with every kind of bad input."""
    data = (LOGS / "mpi-io-test-dxt.darshan").read_bytes()
    folder.mkdir()
    (folder / "empty.darshan").touch()
    (folder / "cut.darshan").write_bytes(data[:9000])
    (folder / "newer.darshan").write_bytes(b"9.99" + data[4:])
    (folder / "other.darshan").write_text("this is not a log\n" * 100)
    write_log(folder / "idle.darshan")
    trace = dxt_record(1, writes=[(0, 1000, 1.0, 3.0)])
    write_log(folder / "good.darshan", modules=[trace])
    for number in range(100):
        (folder / f"note-{number}.txt").write_text("hello\n")
    return folder


def test_bad_input_is_named_once_and_the_rest_imported(tmp_path: Path) -> None:
    need_darshan()
    imported = _import(_bad_folder(tmp_path / "logs"))
    (job,) = imported.jobs
    assert Path(job.source).name == "good.darshan"
    sources = [Path(item.source).name for item in imported.skipped]
    assert len(sources) == len(set(sources)) == 105
    reasons = {Path(item.source).stem: item.reason for item in imported.skipped}
    assert "the file is empty" in reasons["empty"]
    assert "damaged" in reasons["cut"]
    assert "9.99" in reasons["newer"]
    assert "not a Darshan log" in reasons["other"]
    assert "no I/O" in reasons["idle"]
    assert "known format" in reasons["note-7"]


def test_strict_refuses_instead(tmp_path: Path) -> None:
    need_darshan()
    with pytest.raises(InputError, match=r"note-0\.txt: --strict: .*and 104 more"):
        _import(_bad_folder(tmp_path / "logs"), strict=True)


def test_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no log"):
        _import(tmp_path)
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(InputError, match=r"no job can be imported: .*known format"):
        _import(tmp_path)


def test_jobs_that_do_not_meet_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,begin,end,bytes\na,0,5,7\nb,10,15,7\n")
    assert any("no two jobs" in note for note in _import(path).notes)
    assert not any("no two jobs" in note for note in _import(_csv(tmp_path)).notes)


def test_the_journal_is_gone_after_the_import(tmp_path: Path) -> None:
    journal = tmp_path / "out.json.partial"
    _import(_csv(tmp_path), journal=journal)
    assert not journal.exists()
