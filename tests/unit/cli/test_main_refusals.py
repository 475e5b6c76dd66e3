# SPDX-License-Identifier: MIT
"""Bad values, and options that contradict one another or would have no effect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main

HEAD = "process,file,operation,offset,size,start,end\n"
TRACES = {
    "huge.csv": "0,x,write,0,99999999999999,0,1\n",
    "short.csv": "0,x,write,0,9,0\n",
    "long.csv": "0,x,write,0,9,0,1,2\n",
    "late.csv": "0,x,write,0,9,1e9,1e9\n",
}
PROBLEM = Path(__file__).parents[3] / "examples" / "problem.json"
#: Command -> part of the message.
REFUSED = {
    "replay huge.csv d": "huge.csv: line 2: 99999999999999 bytes in one access",
    "replay short.csv d": "short.csv: line 2: has 6 of 7 columns",
    "replay long.csv d": "long.csv: line 2: has 8 of 7 columns",
    "replay late.csv d": "--speed: a process waits for 1e+09 s between",
    "replay late.csv d --speed nan": "--speed: 'nan' is not a positive number",
    "replay late.csv d --speed 0": "--speed: '0' is not a positive number",
    f"place {PROBLEM} --simulate --policy set-10:period=given": "has no period, but s",
    "compare /dev/zero": "/dev/zero: this is a device",
    "compare --instances 99999999999": "--instances: '99999999999' is more than",
    "bound --instances 100001": "--instances: '100001' is more than",
    "generate synthetic --instances 100001 -o .": "'100001' is more than",
    "replay none.csv d": "none.csv: cannot read the file: No such file or directory (c",
    "compare --set pressure=1 --set W=1": "pressure is given twice",
    "compare --policy periodic-greedy-yield:delta=1,delta=2": "delta is given twice",
    "serve --listen tcp://127.0.0.1:99999": "--listen: 'tcp://127.0.0.1:99999' is not",
    "serve --listen tcp://127.0.0.1:0": "the port 1 to 65535",
    "serve --join 127.0.0.1:7400": "--join: '127.0.0.1:7400' is not an address",
    "serve --join tcp://a:1 --listen tcp://b:2": "listen: does not go with `join`",
    "serve --bandwidth 1B/s --job-folder x": "job_folder: has no effect without `targe",
    "serve --bandwidth 1B/s --placement a+b": "placement: has no effect without `tar",
    "serve --priorities urgent": "--priorities: 'urgent' is not a list of priorities",
    "run --priority high -- true": "'high' is not a number such as 10 or -5",
    "serve --make-keys a --make-slurm b": "not allowed with argument --make-keys",
    "serve --bandwidth 1B/s --policy periodic-greedy-yield": "needs the parameter",
    "serve --bandwidth 10": "--bandwidth: '10' has no unit (write e.g. \"10 MB/s\")",
    "serve --gap 50": "--gap: '50' has no unit (write e.g. \"50 s\")",
    "serve --bandwidth lern": "--bandwidth: 'lern' is not a bandwidth (did you mean l",
    "serve --web 0.0.0.0:1": "web: '0.0.0.0:1' can be reached from other machines",
    "serve --bandwidth 1B/s --strategy 3a": "strategy: 3a divides storage targets, and",
    **{
        f"serve --{name}=": f"--{name}: the value is empty (give a name)"
        for name in ("make-keys", "make-slurm", "make-grafana", "make-web-token")
    },
    "serve --make-web-token operator": "there is no file for the token (name one with",
    "serve --make-web-token no-such --web-token x": "there is no user 'no-such'",
    "serve --metrics foo:bar": "--metrics: 'foo:bar' is not an address (write HOST:P",
    "mount a b --limit 5": "--limit: '5' has no unit",
    "mount --set-limit 5 m": "--set-limit: '5' has no unit",
    "mount --set-limit 0B/s m": "--set-limit: '0B/s' is not a limit",
    "run --hint-volume 5 -- true": "--hint-volume: '5' has no unit",
    "run --hint-work 5 -- true": "--hint-work: '5' has no unit",
    "run --hint-work 0s -- true": "--hint-work: '0s' is not positive",
    "mount --status m --limit 5": "--limit cannot be used with a running mount",
    "mount --set-limit 1 m --slo x": "--slo cannot be used with a running mount",
    "mount --unmount m --background": "--background cannot be used with a running",
    "mount --unmount m --json x": "--json cannot be used with --unmount",
    "mount --status m --force": "--force cannot be used with --status",
    "mount a b --force": "--force cannot be used with BACKING MNT",
    "mount a b --json x": "--json cannot be used with BACKING MNT",
    "bench overhead --policies fcfs": "--policies cannot be used with overhead (use it",
    "bench overhead pacing --output x": "--output cannot be used with overhead, pacing",
    "bench pacing --cluster": "--cluster cannot be used with pacing (use it with slo",
    "bench slo --quick": "--quick has no effect (use it with advice, partition or slo "
    "--cluster)",
    "bench slo --scenes reader": "--scenes has no effect (use it with partition or slo "
    "--cluster)",
    "bench delta --cluster --scenes D=0": "--scenes has no effect (use it with",
    "bench delta --cluster --storage .": "--storage cannot be used with --cluster",
    "bench delta --cluster --policies t-cpu": "unknown strategy to be measured 't-cpu'",
    "bench partition --scenes three": "unknown scene 'three'",
    "reproduce p4-fig5 --cluster": "--cluster has no effect (use it with --live)",
    "bench slo --cluster --scenes x,y": "--scenes: 'x,y' is in no name of a scene (",
    "bench slo --cluster --rounds 3": "--rounds cannot be used with --cluster",
    "bench overhead --folder none": "--folder none: there is no such folder",
    "bench overhead pacing overhead": "benchmark 'overhead' is given twice",
    "ctl bandwidth 40": "RATE: '40' has no unit",
    "ctl limit j 5": "RATE: '5' has no unit",
    "ctl hint j 5": "VOLUME: '5' has no unit",
    "ctl bandwidth 0": 'RATE: 0 is not positive (write e.g. "1 GiB/s")',
    "ctl limit j 0": "RATE: a limit of 0 would stop the job for ever",
    "ctl hint j 0": 'VOLUME: 0 is not positive (write e.g. "1 GiB")',
    "ctl hint j much": "VOLUME: 'much' is not a",
    "top --every nan": "--every: 'nan' is not a finite time",
    "top --every 5": "--every: '5' has no unit",
    "top --every 0": "--every: '0' is out of range (give 0.05 to 86400 seconds)",
}


def outcome(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> tuple[object, str, str]:
    """Return the status, standard output and standard error of a command."""
    if words[0] == "serve":
        # In a process of its own: `serve` changes priority, umask and limits.
        penstock = [sys.executable, "-m", "penstock", *words]
        done = subprocess.run(
            penstock, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stdout, done.stderr
    try:
        status: object = main(words)
    except SystemExit as stop:
        status = stop.code
    return status, *capfd.readouterr()


@pytest.mark.parametrize("command", REFUSED)
def test_a_bad_command_is_refused_in_one_line_and_does_nothing(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, text in TRACES.items():
        (tmp_path / name).write_text(HEAD + text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_FOLDER", str(tmp_path / "home"))
    status, out, err = outcome(command.split(), capfd)
    assert REFUSED[command] in err
    assert (status, err.count("\n"), out) == (2, 1, "")
    made = {path.name for path in tmp_path.iterdir()} - {"home"}
    assert made == set(TRACES)


def test_a_message_about_a_long_file_is_one_short_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.json"
    path.write_text('{"penstock": "' + "\\n" + "x" * 100_000 + '"}')
    assert main(["compare", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert len(message) < 3000
