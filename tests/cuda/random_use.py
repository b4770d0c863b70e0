#!/usr/bin/env python3
# Four threads use CUDA at random, and the driver returns errors at random calls. The ledger is right to the byte.
import _random_use # noqa: F401
