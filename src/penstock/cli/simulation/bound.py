# SPDX-License-Identifier: MIT
"""Print an upper bound on MinYield that holds for every scheduler, even clairvoyant."""

from __future__ import annotations

import argparse
import sys

from penstock.cli.options import (
    add_json_option,
    add_source_options,
    source_facts,
    source_from,
    write_json,
)
from penstock.cli.tables import pressure_text

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "print an upper bound on the MinYield of any scheduler"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock bound``."""
    add_source_options(parser, instances=1)
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compute and print the bound of every instance."""
    from penstock.analysis import min_yield_bound
    from penstock.experiments.output.documents import bound_document
    from penstock.experiments.output.provenance import provenance

    source = source_from(arguments)
    aimed = source.aimed_pressure
    entries = []
    for index in range(source.count):
        instance = source.instance(index)
        bound = min_yield_bound(instance)
        pressure = instance.pressure()
        entries.append(
            {
                "index": index,
                "digest": instance.digest(),
                "pressure": pressure,
                "window": [instance.window.begin, instance.window.end],
                "bound": bound_document(bound),
            }
        )
        if arguments.json != "-":
            sys.stdout.write(
                f"instance {index}: MinYield <= {bound.min_yield:.6f} "
                f"({bound.method}), {pressure_text(pressure, aimed)}\n"
            )
    if arguments.json:
        facts = provenance(**source_facts(arguments))
        document = {"penstock": 1, "provenance": facts, "instances": entries}
        write_json(document, arguments.json)
    return 0
