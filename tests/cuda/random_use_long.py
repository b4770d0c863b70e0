#!/usr/bin/env python3
# long
# timeout: 900
# The same for a million steps.
import _random_use # noqa: F401
