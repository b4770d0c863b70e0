#!/usr/bin/env python3
# needs: deb:libpython3.11-testsuite
# timeout: 14400
# long
"""CPython's whole test suite, except tests that need a screen, the network or gigabytes (and except vsock, which hangs
in some virtual machines): the same test files and cases pass, fail and are skipped as without memstow."""
from _cpython import suite
from _suite import check_ledgers, compare

compare(suite([], ["-i", "*VSOCK*"], 5400))
check_ledgers("ledgers")
