#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# alone
# long
"""A real ComfyUI grows by less than 1 MB in fifty runs, by the ledger and by RSS. Each run loads a model and frees it.
No identity of a dead model is left."""
from _many_runs import measure

measure(30, 50, with_retained=True)
