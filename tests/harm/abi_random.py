#!/usr/bin/env python3
# needs: cc mimalloc deb:libjemalloc2
"""Threads call the registration ABI in random order, with good, wrong and garbage arguments. At the end the figures of
each owner are exact, and nothing is broken."""
import _abi

_abi.call_at_random(2)
