# SPDX-License-Identifier: MIT
"""What jobs did: recorded while they run, kept for weeks, read after their end.

The `recorder` writes to SQLite. Days that are over are moved to Parquet files
(`parquet`). The `reader` reads both. Questions of users wait in the
queue of `questions`, and `answers` answers them.
"""
