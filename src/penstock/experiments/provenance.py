# SPDX-License-Identifier: MIT
"""What made a result: every result file says it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from penstock import __version__

__all__ = ["command_line", "provenance"]


def command_line() -> str:
    """Return the command that runs, as one could type it again."""
    program = Path(sys.argv[0]).name
    return shlex.join(
        [program if program != "__main__.py" else "penstock", *sys.argv[1:]]
    )


def provenance(**facts: Any) -> dict[str, Any]:
    """Return version, command and `facts` (seed, workload, ...)."""
    return {"version": __version__, "command": command_line(), **facts}
