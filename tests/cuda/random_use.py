#!/usr/bin/env python3
# Random use of CUDA by four threads, with errors of the driver's at random calls: the ledger is right to the byte.
import _random_use # noqa: F401
