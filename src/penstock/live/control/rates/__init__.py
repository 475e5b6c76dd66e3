# SPDX-License-Identifier: MIT
"""Rates for the jobs of one storage: the simulator's engine applied to running jobs.

`controller` receives events of jobs and asks the policy, on the engine's columns
(`job_columns`, `steps`); `lending` gives unused bandwidth to other jobs.
"""
