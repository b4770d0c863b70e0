#!/usr/bin/env python3
# needs: cc stacks deb:libjemalloc2
# timeout: 900
# long
"""Runs each case of misuse.py three times, because the kernel gives each process other addresses."""
import os, pathlib, sys

import support

support.run(sys.executable, pathlib.Path(__file__).with_name("misuse.py"), timeout=800,
            env={**os.environ, "TIMES": "3"})
