#!/usr/bin/env python3
# needs: cc mimalloc
# timeout: 200
"""A program forks while its threads make and destroy the heaps of owners: no child waits for a lock that another thread
held."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("fork_heaps.c"))
support.memstow("run", "--quiet", "-o", "x.mst", "--follow=all", "--stacks=none", "--", program, 400, timeout=150)
