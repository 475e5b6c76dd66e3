# SPDX-License-Identifier: MIT
"""Benchmark ``slo --cluster``: promises on a real parallel file system.

A MooseFS with four chunk servers behind limited links and three client nodes, each with
its own mount and scheduler. `scenes` says which applications run where, `nodes` runs
them beside the cluster, `model` simulates the same, `results` computes the figures,
`measurements` compares them with promises and goals, and `report` writes them.
"""
