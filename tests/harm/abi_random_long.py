#!/usr/bin/env python3
# needs: cc mimalloc
# timeout: 2700
# long
"""Ten minutes of what abi_random does for ten seconds."""
import _abi

_abi.call_at_random(120)
