#!/usr/bin/env python3
# needs: cc mimalloc
# timeout: 1000
# long
"""Ten minutes of what abi_random does for ten seconds."""
import _abi

_abi.call_at_random(120)
