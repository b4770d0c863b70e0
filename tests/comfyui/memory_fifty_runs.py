#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# alone
# long
"""Fifty runs of a real ComfyUI, each of which loads a model and frees it, grow it by less than 1 MB, in the ledger and
in RSS. No identity of a dead model is left."""
from _many_runs import measure

measure(30, 50, with_retained=True)
