# SPDX-License-Identifier: MIT
"""Pure decisions of live control: events in, rates and messages out, without I/O.

`coordinator` receives the messages of agents; `operations` follows the operations that
`phases` detects in them.
There is one `storage` per file system, with a `controller`, and `bandwidth` learns what
it can give; `storages` holds all of them. `controller` asks the policy, on the engine's
columns (`job_columns`, `steps`), and lends unused bandwidth (`lending`). `stager` asks
the staging strategy; `requests` measures how a job writes. `placing` gives jobs their
storage targets. `status` and `explanation` show the result to users.

One record per role holds facts about a job:

| record | role |
|---|---|
| `jobs.ControlledJob` | a job in the controller: state outside the engine's columns |
| `jobs.JobHistory` | what is saved of a job, for the next start of the controller |
| `records.JobRecord` | a job in the coordinator: counters and sent grants by node |
| `live.wire.messages.JobCounters` | a job on one node, as its agent reports it |
| `live.wire.messages.JobStatus` | a job as users see it in a status |
| `live.node.local_job.LocalJob` | a job in the agent: its page and its processes |
| `live.node.local_job.JobNote` | what the agent saves beside the page |
"""
