#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# alone
# long
"""In fifty runs of a real ComfyUI, the live bytes in the ledger and the RSS each grow by less than 1 MB. Each run loads
a model and frees it. No identity of a dead model is left."""
from _many_runs import measure

measure(30, 50, with_retained=True)
