#!/usr/bin/env python3
# needs: deb:libpython3.11-testsuite
# timeout: 900
"""CPython's tests of memory, threads, processes and signals have the same outcomes with and without memstow. Each of
their processes leaves a ledger that can be read. Another test, cpython_suite, runs the whole suite. It also looks up
the names of functions for every ledger."""
from _cpython import suite
from _suite import check_ledgers, compare

compare(
    suite([
        "test_ctypes", "test_fork1", "test_gc", "test_mmap", "test_os", "test_posix", "test_threading", "test_thread",
        "test_resource"
    ], [], 400))
check_ledgers("ledgers", named=10)
