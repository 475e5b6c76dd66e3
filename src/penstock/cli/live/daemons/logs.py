# SPDX-License-Identifier: MIT
"""The log of a daemon: lines for people, or one JSON object per line for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from penstock.live.settings import Settings

__all__ = ["JsonFormatter", "start_logging"]

_TEXT = "%(asctime)s %(name)s[%(process)d]: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, process and message.

    An exception adds the key ``exception``, its traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        instant = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": instant.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(settings: Settings, stream: TextIO) -> None:
    """Send all log messages of this process to `stream`.

    The level ``debug`` holds for penstock, not for the libraries that it uses.
    """
    handler = logging.StreamHandler(stream)
    as_json = settings.log_format == "json"
    handler.setFormatter(JsonFormatter() if as_json else logging.Formatter(_TEXT))
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(handlers=[handler], level=max(level, logging.INFO))
    logging.getLogger("penstock").setLevel(level)
