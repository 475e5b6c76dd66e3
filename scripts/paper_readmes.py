# SPDX-License-Identifier: MIT
"""Write the tables of figures and claims in ``src/penstock/papers/*/README.md``.

``python scripts/paper_readmes.py [--verdicts FOLDER]``

The text of a README is written by hand. This script replaces what stands between
``<!-- figures -->`` and ``<!-- end of figures -->``, and the same for ``claims``, by
tables of what the modules declare. FOLDER is the output of ``penstock reproduce ...
--scale paper -o FOLDER``: its verdicts are taken over. The verdicts of figures that
FOLDER does not hold stay as they are in the README.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from penstock.papers import FIGURES, get_figure

__all__ = ["main", "paper_folders", "read_verdicts", "updated"]

ROOT: Final = Path(__file__).parents[1] / "src" / "penstock" / "papers"
NOT_MEASURED: Final = "not measured"
#: (figure, claim) -> "yes", "no" or `NOT_MEASURED`.
Verdicts: TypeAlias = dict[tuple[str, str], str]
_ROW: Final = re.compile(r"^\| `(\S+)` \| `(\S+)` \| .* \| ([a-z ]+) \|$", re.MULTILINE)


def paper_folders() -> list[Path]:
    """Return the folders of `penstock.papers` that have a README."""
    return sorted(path.parent for path in ROOT.glob("*/README.md"))


def _names(folder: Path) -> list[str]:
    """Return the figures that the modules of a folder declare."""
    package = f"penstock.papers.{folder.name}."
    return [name for name, e in FIGURES.items() if e.module.startswith(package)]


def read_verdicts(text: str) -> Verdicts:
    """Return the verdicts that the claims table of a README holds."""
    return {(figure, name): verdict for figure, name, verdict in _ROW.findall(text)}


def _measured(folder: Path) -> Verdicts:
    """Return the verdicts of all figures that were reproduced at paper scale."""
    verdicts: Verdicts = {}
    for path in sorted(folder.glob("*/claims.json")):
        record = json.loads(path.read_text())
        if record["provenance"]["scale"] != "paper":
            raise SystemExit(f"{path} is not of paper scale")
        for claim in record["claims"]:
            key = record["name"], claim["name"]
            verdicts[key] = "yes" if claim["holds"] else "no"
    return verdicts


def _figures_table(names: Iterable[str]) -> str:
    lines = ["| figure | shows | source |", "|---|---|---|"]
    for name in names:
        entry = FIGURES[name]
        lines.append(f"| `{name}` | {entry.title} | {entry.source} |")
    return "\n".join(lines)


def _claims_table(names: Iterable[str], verdicts: Verdicts) -> str:
    lines = ["| figure | claim | sentence | holds |", "|---|---|---|---|"]
    for name in names:
        for claim in get_figure(name).claims:
            verdict = verdicts.get((name, claim.name), NOT_MEASURED)
            sentence = claim.sentence.replace("|", "\\|")
            lines.append(f"| `{name}` | `{claim.name}` | {sentence} | {verdict} |")
    return "\n".join(lines)


def _replaced(text: str, block: str, content: str) -> str:
    """Return the text with new content between the marks of a block."""
    first, last = f"<!-- {block} -->", f"<!-- end of {block} -->"
    before, found_first, rest = text.partition(first)
    _, found_last, after = rest.partition(last)
    if not (found_first and found_last):
        raise SystemExit(f"README without {first} and {last}")
    return f"{before}{first}\n{content}\n{last}{after}"


def updated(folder: Path, measured: Verdicts) -> str:
    """Return the README of a folder with both tables as declared."""
    text = (folder / "README.md").read_text()
    names = _names(folder)
    text = _replaced(text, "figures", _figures_table(names))
    verdicts = read_verdicts(text) | measured
    return _replaced(text, "claims", _claims_table(names, verdicts))


def main() -> None:
    """Write the READMEs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    measured = _measured(arguments.verdicts) if arguments.verdicts else {}
    for folder in paper_folders():
        (folder / "README.md").write_text(updated(folder, measured))


if __name__ == "__main__":
    main()
