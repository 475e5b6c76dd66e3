# SPDX-License-Identifier: MIT
"""The model of a shared storage system: frozen, validated records, JSON in and out."""

from penstock.model.application import Application, Column
from penstock.model.documents import FORMAT
from penstock.model.files import (
    instance_to_document,
    read_instance,
    write_instance,
)
from penstock.model.instance import Instance
from penstock.model.platform import Platform, Sharing
from penstock.model.problem import Problem, read_problem, write_problem
from penstock.model.window import Window

__all__ = [
    "FORMAT",
    "Application",
    "Column",
    "Instance",
    "Platform",
    "Problem",
    "Sharing",
    "Window",
    "instance_to_document",
    "read_instance",
    "read_problem",
    "write_instance",
    "write_problem",
]
