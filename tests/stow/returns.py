#!/usr/bin/env python3
# timeout: 600
# alone
"""Stowed memory comes back as a whole, by request or because the program makes a call that is impossible with stowed
memory."""
import _moving

_moving.run_cases("returns")
