#!/usr/bin/env python3
# timeout: 600
# alone
"""Memory that comes back as a whole, by request, or because the program does what no stowed memory can be there for."""
import _moving

_moving.run_cases("returns")
