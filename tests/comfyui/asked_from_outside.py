#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Requests from outside reach the worker thread unchanged. A trigger because of short memory says how much is missing.
A request that was withdrawn, or that names no owner, harms no other request. No request is served during a run. A model
that is to be stowed is declared idle between two runs, even if the disk is full and it cannot be stowed; it is never
idle during a run, nor after its policy has changed to keep."""
import ctypes

import _inprocess
import support

_inprocess.under_double(__file__)
runs = _inprocess.load()

import comfy.model_patcher
import torch
from memstow_pack.runs import tell
import memstow

double = ctypes.CDLL(None)
double.memstow_double_answer.restype = ctypes.c_int64
double.memstow_double_needed.restype = ctypes.c_uint64
queue = _inprocess.Queue()
STOW = 2


def answer(ticket):
    """Waits until the listening thread has queued the request. Then does what the worker does between two runs. Returns
    the answer to the request."""
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

# models that are declared idle
in_run = []


def load(self):
    cpu = torch.device("cpu")
    return (comfy.model_patcher.ModelPatcher(torch.nn.Linear(64, 64), cpu, cpu),)


def is_idle():
    return [bool(double.memstow_double_idle(identity.owner.id)) for identity in runs.registry.all()]


def look(self, model, seed):
    in_run.append(is_idle())
    return ()


_inprocess.node("Load", ("MODEL",), load)
_inprocess.node("Look", (), look, True, model=("MODEL",), seed=("INT", {}))


def prompt(word, seed):
    return {"load": {"class_type": "Load", "inputs": {}},
            "policy": {"class_type": "MemstowPolicy", "inputs": {"model": ["load", 0], "policy": word, "priority": 0}},
            "look": {"class_type": "Look", "inputs": {"model": ["policy", 0], "seed": seed}}}


queue.run(prompt("stow", 1), ["look"])
assert runs.last["owners"][0]["stowed_bytes"] and is_idle() == [True], runs.last
queue.run(prompt("keep", 2), ["look"])
assert is_idle() == [False]
double.memstow_double_disk_full(1)
double.memstow_restore(runs.last["owners"][0]["owner"])
queue.run(prompt("stow", 3), ["look"])
assert not runs.last["owners"][0]["stowed_bytes"] and is_idle() == [True], runs.last # the disk is full
queue.run(prompt("stow", 4), ["look"])
assert answer(double.memstow_double_ask(STOW, runs.last["owners"][0]["owner"], b"")) < 0 and is_idle() == [True]
queue.run(prompt("keep", 5), ["look"])
assert in_run == [[False]] * 5 and is_idle() == [False], in_run

# If the page orders that a model be freed, the trigger's text names the model with its file, which tells models of one
# name apart.
texts, decide = [], memstow.decide


def deciding(reason, text, needed=0):
    texts.append(text)
    return decide(reason, text, needed)


memstow.decide = deciding
identity, = runs.registry.all()
identity.origin = "a.st"
given, text = runs.orders["free"](identity, None)
assert given >= 0 and texts == [f"free {identity.owner.name} (a.st)"], (given, text, texts)
