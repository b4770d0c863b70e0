#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# alone
# long
"""Fifty runs of a real ComfyUI that each load a model and free it grow it by less than 1 MB, in the ledger and in RSS,
and leave no dead identity behind."""
from _many_runs import measure

measure(30, 50, with_retained=True)
