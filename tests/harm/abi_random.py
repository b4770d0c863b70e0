#!/usr/bin/env python3
# needs: cc mimalloc
"""Threads call the registration ABI in random order, with good, wrong and garbage arguments: what each owner has is
exact in the end, and nothing breaks."""
import _abi

_abi.call_at_random(2)
