# SPDX-License-Identifier: MIT
"""How accurate live control is: measured rates and yields beside the predicted."""
