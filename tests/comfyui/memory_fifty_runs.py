#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# alone
# long
"""Fifty runs of a real ComfyUI that each load a model and free it grow it by less than 1 MB, in the ledger and in RSS, and
leave no dead identity behind."""
from _comfy import MB
from _many_runs import measure

measure(30, 50, 4 * MB, with_retained=True)
