# SPDX-License-Identifier: MIT
"""What programs import: hints of I/O phases, and the burst-buffer interface BBIO."""
