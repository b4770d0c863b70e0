#!/usr/bin/env python3
# needs: cc mimalloc deb:libjemalloc2
# timeout: 2700
# long
"""abi_random with two minutes for each mode instead of two seconds."""
import _abi

_abi.call_at_random(120)
