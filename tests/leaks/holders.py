#!/usr/bin/env python3
# needs: torch pip:numpy pip:pillow
# timeout: 600
"""A program with one module that allocates, and others that keep the memory, each in its own way. Each holder is found:
a dictionary, a closure, a waiting thread and a dozen others. In text and in JSON, a finding names its holder before the
code that allocated the memory. The program is asked for holders only on demand, and not again for holders that are
known. A snapshot has the holders, too. With --timeout=0 nothing is asked. holders_objects_long.py does the same with
each Python object counted by itself."""
from _holders import find_all

find_all((), "out.mst")
