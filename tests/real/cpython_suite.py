#!/usr/bin/env python3
# needs: deb:libpython3.11-testsuite
# timeout: 14400
# long
"""The test files and cases of CPython's whole test suite pass, fail and are skipped as without memstow. Left out are
tests that need a screen, the network or gigabytes, and tests of vsock, which hang in some virtual machines."""
from _cpython import suite
from _suite import check_ledgers, compare

compare(suite([], ["-i", "*VSOCK*"], 5400))
check_ledgers("ledgers")
