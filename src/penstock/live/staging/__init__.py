# SPDX-License-Identifier: MIT
"""Staged writes on a node: journals, drains, settings, and partitions of targets.

`journal` reads journals, `drain` lists and drains those of a folder, `drain_process`
starts the preload library as a drainer, and `drainers` are the drains that the agent
starts. `rules` has the settings of staging. `partitioner` and `drivers` apply the
partitions of strategies 3a and 3b: `job_folder` says where the folders of jobs are, and
`assigner` puts one on its targets, as the user of the job.
"""
