# SPDX-License-Identifier: MIT
"""A short ``penstock bench delta``: real processes, mounts, journals and drainers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import __version__
from penstock.bench.accuracy import delta
from penstock.cli import main
from support.mounts import why_no_mounts


def test_a_delta_graph_is_measured_and_drawn(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if reason := why_no_mounts():
        pytest.skip(reason)
    monkeypatch.setattr(delta, "_OFFSETS_S", (0.0,))
    monkeypatch.setattr(delta, "_SIZE", 4_000_000)
    monkeypatch.setattr(delta, "_DELAY_S", 0.2)
    output, table = tmp_path / "drawings", tmp_path / "figures.json"
    names = ("controlled", "3b")
    command = ["bench", "delta", "--rounds=1", "--policies", *names]
    flags = [f"--output={output}", f"--json={table}"]
    # Whether the goals are reached depends on the machine.
    assert main([*command, *flags]) in {0, 1}
    capsys.readouterr()
    figures = {
        figure["name"]: figure
        for figure in json.loads(table.read_text())["benchmarks"]["delta"]
    }
    assert "controlled: total time / total time without control" in figures
    assert "3b: I/O time / I/O time alone on the partition" in figures
    parts = figures["controlled: largest difference, live and simulated factors"][
        "parts"
    ]
    # Requests take 0.1 s, pauses 0.2 s. The data staged at 0, 0.2, 0.4 and 0.6 s is
    # drained in the pauses [0.1, 0.3], [0.4, 0.6] of the other group, until 0.8 s. The
    # writing group takes 4 x 0.1 + 3 x 0.2 = 1 s, as it does alone.
    simulated = parts["D=0s:A:simulated"], parts["D=0s:B:simulated"]
    assert simulated == (pytest.approx(1.0), pytest.approx(0.8))
    assert all(value > 0.5 for value in parts.values())
    document = json.loads((output / "delta.json").read_text())
    assert set(document["graphs"]) == {"none", *names}
    assert document["provenance"]["version"] == __version__
    for graph in document["graphs"].values():
        (live,), (ideal,) = graph["live"], graph["simulated"]
        assert live["offset"] == ideal["offset"] == 0.0
        assert live["total"] >= max(live["io_times"])
    assert (output / "delta.svg").read_text().startswith("<?xml")
    assert {path.name for path in tmp_path.iterdir()} == {"drawings", "figures.json"}


def test_a_given_folder_is_measured_without_goals(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(delta, "_OFFSETS_S", (0.0,))
    monkeypatch.setattr(delta, "_SIZE", 4_000_000)
    monkeypatch.setattr(delta, "_DELAY_S", 0.2)
    storage, output = tmp_path / "storage", tmp_path / "drawings"
    storage.mkdir()
    flags = ["--rounds=1", f"--storage={storage}", f"--output={output}"]
    # Measurements on a given storage have no goals.
    assert main(["bench", "delta", *flags, "--bandwidth=20 MB/s", "--policies=2a"]) == 0
    assert "2a: factor of the staged, D = 0" in capsys.readouterr().out
    document = json.loads((output / "delta.json").read_text())
    assert (document["rate"], document["size"]) == (20e6, 2_000_000)
    # Requests take 0.1 s, pauses 0.2 s: staged data goes after the 1 s of the other.
    ((ideal,), (alone,)) = (document["graphs"][n]["simulated"] for n in ("2a", "none"))
    assert ideal["factors"] == [pytest.approx(1.0), pytest.approx(1.4)]
    assert alone["alone"] == pytest.approx(1.0)
    assert list(storage.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["delta", "--bandwidth=1 GB/s"], "--bandwidth has no effect"),
        (["delta", "--storage=.", "--bandwidth=20"], "--bandwidth: "),
        (["delta", "--storage=.", "--bandwidth=0 B/s"], "--bandwidth: "),
        (["delta", "--storage=nowhere"], "--storage nowhere: there is no such folder"),
        (["delta", "--storage=.", "--policies=3a"], "strategy 3a partitions targets"),
        (["overhead", "--storage=."], "--storage cannot be used with overhead"),
        (["delta", "--policies=9z"], "unknown strategy to be measured '9z'"),
    ],
)
def test_mistakes_are_reported_before_any_file_is_created(
    flags: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *flags]) == 2
    assert capsys.readouterr().err.startswith(f"penstock: {reason}")
    assert list(tmp_path.iterdir()) == []
