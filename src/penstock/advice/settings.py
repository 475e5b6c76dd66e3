# SPDX-License-Identifier: MIT
"""Advice as a settings file for ``penstock serve``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.model import Instance
from penstock.units import format_bandwidth

__all__ = ["settings_text"]


def settings_text(advice: Mapping[str, Any], instance: Instance) -> str:
    """Return the settings that put the advice into effect (TOML).

    The mode is a dry run: the operator sees what would happen before anything does.
    """
    facts = advice["provenance"]
    bandwidth = instance.platform.bandwidth
    return (
        f"# {advice['summary']}\n"
        f"# penstock {facts['version']}: {' '.join(facts['command'].split())}\n"
        f'policy = "{advice["policy"]}"\n'
        f"# {format_bandwidth(bandwidth)}, as the advice assumed. If the storage has\n"
        '# more, jobs would be held up without need: correct it, or write "learn".\n'
        f'bandwidth = "{bandwidth:.0f} B/s"\n'
        "# Grants are computed and shown, but nobody is held up. After a look at\n"
        "# `penstock ctl status`, run `penstock ctl on`, and delete this line.\n"
        'mode = "dry-run"\n'
    )
