# SPDX-License-Identifier: MIT
"""The things that penstock speaks of: frozen, validated, JSON in and out."""

from penstock.model.application import Application, Column
from penstock.model.files import (
    FORMAT,
    instance_to_document,
    read_instance,
    replacing,
    write_instance,
)
from penstock.model.instance import Instance
from penstock.model.platform import Platform
from penstock.model.window import Window

__all__ = [
    "FORMAT",
    "Application",
    "Column",
    "Instance",
    "Platform",
    "Window",
    "instance_to_document",
    "read_instance",
    "replacing",
    "write_instance",
]
