# SPDX-License-Identifier: MIT
"""Compare staging strategies for two applications that write at the same time.

A and B each write 32 requests of 256 MB with a pause of 0.75 s between them; B begins 5
s after A. With a strategy, one of them writes to the storage while the other one
stages: it writes to its burst buffer, which is drained to the storage later.

The interference factor is the time of an I/O phase over its time alone. 1: undisturbed.
"""

from penstock.sim.buffers.model import Buffer, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers

MB, GB = 1e6, 1e9
storage = Storage(bandwidth=273 * MB)
buffer = Buffer(speed_bytes_per_s=10 * GB)


def writer(name: str, start: float) -> Writer:
    """Return an application that writes 8 GB in 32 requests."""
    return Writer.of_requests(name, count=32, size=256 * MB, delay=0.75, start_s=start)


alone = simulate_buffers(storage, [writer("A", 0.0)], "none", buffer).io_times[0]
print(f"alone: {alone:.1f} s\n")
print(f"{'strategy':12}{'A':>6}{'B':>6}   rule")
for strategy, rule in (
    ("none", "both write through"),
    ("1a", "stage when another one arrives; drain when it is done"),
    ("2a", "stage behind the one that is there; drain when it is done"),
    ("2b", "as 2a, but drain as soon as there is nothing else to do"),
    ("controlled", "as 2a, but drain into what the other one leaves"),
):
    writers = [writer("A", 0.0), writer("B", 5.0)]
    run = simulate_buffers(storage, writers, strategy, buffer)
    first, second = (time / alone for time in run.io_times)
    print(f"{strategy:12}{first:6.2f}{second:6.2f}   {rule}")
