# SPDX-License-Identifier: MIT
"""Start a command as a shell does: in the foreground, or in the background.

``nohup make test &`` runs the tests with SIGINT and SIGHUP ignored, and every process
inherits that. A test that sends such a signal starts its command with `FOREGROUND`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BACKGROUND", "FOREGROUND"]

#: Words before a command: signals have their default action.
FOREGROUND: Final = ("env", "--default-signal=INT,HUP")
#: Words before a command: Ctrl-C is ignored, as in a job that a script starts with &.
BACKGROUND: Final = ("env", "--ignore-signal=INT")
