# SPDX-License-Identifier: MIT
"""Names of files: any bytes are legal, and results do not depend on them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
STUDY = b"""
instances = 1
policies = ["fcfs"]
[workload]
name = "synthetic"
horizon = 20000
[sweep]
pressure = [0.5]
"""
ONE = ("compare", "--policy", "fcfs", "--no-bound")


def test_results_do_not_depend_on_folder_names_and_workers(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(STUDY)
    made = []
    for options in (("-o", "here", "--jobs", "1"), ("--jobs=2", "--output=there")):
        command = [sys.executable, "-m", "penstock", "study", "s.toml", *options]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
        folder = tmp_path / ("here" if "here" in options else "there")
        files = {path.relative_to(folder): path for path in folder.rglob("*.*")}
        made.append({k: p.read_bytes() for k, p in files.items() if p.is_file()})
    for names in made:
        # These hold times, or a checksum of them.
        for name in [n for n in names if n.stem == "times" or "pieces" in n.parts]:
            del names[name]
    assert {"study.svg", "study.png", "study.csv", "claims.json", "index.html"} < {
        path.name for path in made[0]
    }
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ((*ONE, "three.json", "--json", b"\xff.json"), b"\xff.json"),
        ((*ONE, b"\xfe.json", "--json", "z.json"), b"z.json"),
        ((*ONE, b"\xfe.json", "--plot", "z.svg"), b"z.svg"),
        ((*ONE, "three.json", "--plot", b"\xff.png"), b"\xff.png"),
        ((*ONE, "three.json", "--timeline", b"\xff.svg"), b"\xff.svg"),
        (("study", b"\xfe.toml", "-o", "out"), b"out/study/claims.json"),
        (("import", b"\xfe.csv", "-o", b"\xff.json", "--json", "z.json"), b"z.json"),
        (("replay", "t.csv", b"\xffd", "--json", "z.json"), b"z.json"),
    ],
)
def test_any_bytes(
    command: tuple[str | bytes, ...], made: bytes, tmp_path: Path
) -> None:
    shutil.copy(EXAMPLES / "three.json", tmp_path)
    shutil.copy(EXAMPLES / "three.json", tmp_path / os.fsdecode(b"\xfe.json"))
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.toml")).write_bytes(STUDY)
    trace = "process,file,operation,offset,size,start,end\n0,x,write,0,9,0,1\n"
    (tmp_path / "t.csv").write_text(trace)
    intervals = "job,begin,end,bytes\na,0,1,5\n"
    (tmp_path / os.fsdecode(b"\xfe.csv")).write_text(intervals)
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *command],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    data = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + made)).read_bytes()
    if made.endswith(b".json"):
        assert "penstock" in json.loads(data)["provenance"]["command"]
