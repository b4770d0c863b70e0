#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Requests from outside reach the worker thread as they were asked: a trigger because memory is short says how much is
missing; one that was taken back, or that names nobody, harms no other. No request is served while a run is on."""
import ctypes

import _inprocess
import support

_inprocess.under_double(__file__)
runs = _inprocess.load()

from memstow_pack.runs import tell
import memstow

double = ctypes.CDLL(None)
double.memstow_double_answer.restype = ctypes.c_int64
double.memstow_double_needed.restype = ctypes.c_uint64
queue = _inprocess.Queue()
STOW = 2


def answer(ticket):
    """Waits until the thread that listens has queued it, and does what the worker does between two runs."""
    support.wait_for(lambda: not runs.tickets.empty(), 20, "the request")
    queue.queue.get_flags()
    return double.memstow_double_answer(ctypes.c_uint64(ticket))


assert answer(double.memstow_double_ask_trigger(3, ctypes.c_uint64(6 << 30))) >= 0
assert (double.memstow_double_reason(), double.memstow_double_needed()) == (3, 6 << 30)
assert runs.last["reason"] == "pressure", runs.last
assert answer(double.memstow_double_ask(1, 0, b"by hand")) >= 0
assert (double.memstow_double_reason(), double.memstow_double_needed()) == (2, 0)
assert answer(double.memstow_double_ask(STOW, 999, b"")) < 0, "there is no such owner"
tell(memstow.Request("stow", 77, 1, ""), 5, "nobody waits for this one any more")
assert answer(double.memstow_double_ask(1, 0, b"again")) >= 0
