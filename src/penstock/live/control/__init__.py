# SPDX-License-Identifier: MIT
"""Pure decisions of live control: events in, rates and messages out, without I/O.

`coordinator` receives the messages of agents; `activity` derives from them what each
job does, and `operations` tells the controller. `storage` knows which jobs share a file
system and learns what it can give. `rates` asks the policy of each storage, and lends
unused bandwidth. `stager` asks the staging strategy, `stagers` does so for each
storage, `placing` gives jobs their storage targets. `status`, `explanation` and `names`
show the result to users.

One record per role holds facts about a job:

| record | role |
|---|---|
| `rates.jobs.ControlledJob` | a job in the controller: what is not in columns |
| `rates.jobs.JobHistory` | what is saved of a job, for the next controller |
| `records.JobRecord` | a job in the coordinator: counters and sent grants by node |
| `live.wire.messages.JobCounters` | a job on one node, as its agent reports it |
| `live.wire.messages.JobStatus` | a job as users see it in a status |
| `live.node.local_job.LocalJob` | a job in the agent: its page and its processes |
| `live.node.local_job.JobNote` | what the agent saves beside the page |
"""
