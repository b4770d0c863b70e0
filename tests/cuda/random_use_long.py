#!/usr/bin/env python3
# long
# timeout: 900
# random_use with a million steps.
import _random_use # noqa: F401
