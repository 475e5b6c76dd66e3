# SPDX-License-Identifier: MIT
"""Print the JSON Schema of a file format, or list the formats.

Editors and programs check files with it before penstock reads them. The schemas are
made from the definitions that penstock itself uses. Files in TOML are checked after
they are decoded.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from dataclasses import dataclass
from typing import Any, Final, Literal

from penstock.cli.tables import format_table
from penstock.errors import UnknownNameError

__all__ = ["FORMATS", "SUMMARY", "FileFormat", "main", "schema_of", "setup_parser"]

SUMMARY = "print the JSON Schema of a file format"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format, and the definition that its schema is made from."""

    meaning: str
    module: str
    """Module below ``penstock``."""
    definition: str
    """A type of the module, or a function that returns the schema."""


FORMATS: Final = {
    "instance": FileFormat("instance", "model.formats", "InstanceFormat"),
    "problem": FileFormat("placement problem", "model.formats", "ProblemFormat"),
    "study": FileFormat("study (TOML)", "experiments.study_file", "StudyFormat"),
    "settings": FileFormat(
        "settings of live control (TOML)", "live.settings", "settings_schema"
    ),
    "slo": FileFormat(
        "objectives of a mount (TOML)", "mount.slo_settings", "SloFormat"
    ),
    "comparison": FileFormat(
        "result of compare --json", "experiments.results", "ComparisonFormat"
    ),
    "bound": FileFormat(
        "result of bound --json", "experiments.results", "BoundResultFormat"
    ),
    "plan": FileFormat(
        "result of place --json", "experiments.output.documents", "PlanFormat"
    ),
    "plan-comparison": FileFormat(
        "result of compare --problem --json",
        "experiments.output.documents",
        "PlanComparisonFormat",
    ),
    "import": FileFormat(
        "result of import --json", "advice.importing.importer", "ImportFormat"
    ),
    "advice": FileFormat("result of advise --json", "advice.documents", "AdviceFormat"),
    "report": FileFormat(
        "result of report --json", "advice.job_report.documents", "ReportFormat"
    ),
    "status": FileFormat(
        "result of ctl status --json", "live.wire.messages", "StatusDocument"
    ),
    "bench": FileFormat("result of bench --json", "cli.live.bench", "BenchFormat"),
    "history": FileFormat(
        "result of history --json", "live.wire.messages", "HistoryFormat"
    ),
}


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock schema``."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="name of the format; without it, all formats are listed",
    )


def main(arguments: argparse.Namespace) -> int:
    """Print a schema, or the list of formats."""
    if arguments.name is None:
        rows = [("format", "file")]
        rows += [(name, item.meaning) for name, item in FORMATS.items()]
        sys.stdout.write(format_table(rows))
    else:
        sys.stdout.write(json.dumps(schema_of(arguments.name), indent=2) + "\n")
    return 0


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a file format.

    Raises `UnknownNameError` if there is no such format.
    """
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    item = FORMATS[name]
    definition = getattr(
        importlib.import_module(f"penstock.{item.module}"), item.definition
    )
    schema = _of_type(definition) if isinstance(definition, type) else definition()
    return {"$schema": _DRAFT, **schema}


def _of_type(shape: type) -> dict[str, Any]:
    """Return the schema of a type, without references at its top.

    It does not allow the key ``$schema`` in a file, because penstock refuses unknown
    keys.
    """
    import msgspec

    if issubclass(shape, msgspec.Struct) and shape.__struct_config__.array_like:
        shape = _as_object(shape)
    schema = msgspec.json.schema(shape)
    parts = schema.pop("$defs")
    top = parts.pop(schema["$ref"].rpartition("/")[2])
    return {**top, "$defs": parts} if parts else top


def _as_object(message: Any) -> type:
    """Return the type of the object that ``--json`` writes for a message."""
    import msgspec

    field: Any = msgspec.field  # Its types allow only one of the two defaults.
    fields = [
        (
            item.name,
            item.type,
            field(default=item.default, default_factory=item.default_factory),
        )
        for item in msgspec.structs.fields(message)
    ]
    return msgspec.defstruct(
        message.__name__,
        [("penstock", Literal[1]), *fields],
        namespace={"__doc__": message.__doc__},
    )
