#!/usr/bin/env python3
# needs: comfyui
# timeout: 300
"""memstow.comfy under memstow, with ComfyUI's own loaders in this process. A node of another pack sets the policy of
models. A program that drives PromptExecutor without ComfyUI's worker calls run_ended(), which applies the policy. If
the program does not call run_ended(), a warning says so once. Without the node pack, or for an object that is no model,
the calls do nothing and say why."""
import _inprocess

_inprocess.under_memstow(__file__)

import logging
import os
import sys
import threading
import time

import support

said = []
listener = logging.Handler()
listener.emit = lambda record: said.append(record.getMessage())
logging.getLogger("memstow").addHandler(listener)

# before the pack is loaded
import memstow
import memstow.comfy
from memstow.comfy import free_after_run, keep, run_ended, stow

assert memstow.comfy.keep is keep and memstow.active()
assert (keep(None), stow(1), free_after_run("x"), run_ended(), run_ended("failed")) == (False,) * 5
assert len(said) == 1 and "node pack is not loaded here" in said[0], said
for wrong in ("over", 0, ""):
    try:
        run_ended(wrong)
    except ValueError as error:
        assert "ok, failed, cancelled, out-of-memory" in str(error)
    else:
        raise AssertionError(wrong)

for name in ("custom_nodes", "models/diffusion_models", "input", "output"):
    (support.HERE / name).mkdir(parents=True)
import _comfy

_comfy.prepare(support.HERE, 4096)
sys.path.remove(str(support.ROOT / "tests/real")) # this folder has a pytorch.py
runs = _inprocess.load()

import comfy.sd
import execution
import server

from memstow_pack import runs as running

answers = []


def say(self, model, call, seed):
    answers.append(getattr(memstow.comfy, call)(model))
    return (model,)


def nest(self, model, seed):
    """A node of a pack with its own executor. The node calls run_ended() in the middle of ComfyUI's run."""
    try:
        return (model,)
    finally:
        answers.append(run_ended("failed"))


def fail(self, model, seed):
    raise ValueError("as planted")


ANY = ("*",)
_inprocess.node("Say", ANY, say, model=ANY, call=("STRING", {}), seed=("INT", {}))
_inprocess.node("Nest", ANY, nest, model=ANY, seed=("INT", {}))
_inprocess.node("Fail", ANY, fail, model=ANY, seed=("INT", {}))
_inprocess.node("End", (), lambda self, **values: (), True, **{name: ANY for name in "abc"})
executor = execution.PromptExecutor(server.PromptServer.instance, cache_type=execution.CacheType.CLASSIC,
                                    cache_args={"ram": 0, "lru": 0})
count = 0


def drive(prompt, outcome=None, follow_up=True):
    """Does what a program without ComfyUI's worker does."""
    global count
    count += 1
    answers.clear()
    try:
        executor.execute(prompt, f"prompt {count}", {}, ["end"])
    finally:
        if follow_up:
            assert run_ended(outcome) is True
    return executor.success


def workflow(unet="free_after_run", clip="keep", vae="stow", last="Say", seed=1):
    def node(kind, **inputs):
        return {"class_type": kind, "inputs": inputs}
    return {"unet": node("UNETLoader", unet_name="tiny.safetensors", weight_dtype="default"),
            "clip": node("CLIPLoader", clip_name="tiny.safetensors", type="stable_diffusion"),
            "vae": node("VAELoader", vae_name="tiny.safetensors"),
            **{f"say {of}": node("Say", model=[of, 0], call=call, seed=seed) for of,
               call in (("unet", unet), ("clip", clip), ("vae", vae)) if call},
            "last": node("Say", model=["say unet", 0], call=unet,
                         seed=seed) if last == "Say" else node(last, model=["say unet", 0], seed=seed),
            "end": node("End", a=["last", 0], b=["say clip", 0] if clip else ["clip", 0],
                        c=["say vae", 0] if vae else ["vae", 0])}


def models():
    return {identity.kind: identity.owner.id for identity in runs.registry.all()}


def lines(kind):
    return [line for line in memstow.decisions()[0] if line["kind"] == kind]


def ends():
    return [line["text"] for line in lines("TRIGGER")]


# the policy that a node of another pack sets is applied
assert drive(workflow()) and answers == [True] * 4, answers
first = models()
assert set(first) == {"CLIP", "VAE"} and ends() == ["run 1 ok"], (first, ends())
action = {line["owner"]: (line["policy"], line["action"]) for line in lines("DECISION")}
assert action[first["CLIP"]] == ("keep", "keep") and action[first["VAE"]] == ("stow", "stow"), action
assert {line["node"] for line in lines("SET") if line.get("by") == "comfyui"} == {None}
# the policy holds until it is changed, not only while a node sets it
assert drive(workflow(clip=None, vae=None)) and set(models()) == {"CLIP", "VAE"} and models() == first
assert [line["policy"] for line in lines("READ") if line["owner"] == first["VAE"]] == ["stow", "stow"]
assert drive(workflow(clip="free_after_run", vae="keep", seed=2)) and models() == {"VAE": first["VAE"]}
vae = next(identity for identity in runs.registry.all())
assert keep(vae.model()) is True and stow(vae.held, priority=7) is True
assert runs.registry.ruling(vae, vae.held).priority == 7

# PromptExecutor's own outcome takes precedence over the outcome that the caller gives.
assert not drive(workflow(last="Fail", seed=3), "ok") and ends()[-1] == "run 4 failed" and "MODEL" not in models()
# If a node calls run_ended() inside ComfyUI's run, no policy is applied then, and the run keeps its model.
assert drive(workflow(last="Nest",
                      seed=4)) and answers[-1] is False and ends()[-1] == "run 5 ok" and "MODEL" not in models()

# an executor of another kind
model = comfy.sd.load_diffusion_model(str(support.HERE / "models/diffusion_models/tiny.safetensors"))
try:
    with memstow.run("a loop of mine"):
        assert free_after_run(model)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
finally:
    owner = models()["MODEL"]
    assert run_ended("cancelled") is True
assert (lines("TRIGGER")[-1]["reason"], ends()[-1]) == ("run_ended", "another executor's run cancelled"), ends()
assert [line["action"] for line in lines("DECISION") if line["owner"] == owner] == ["free"]
del model

# objects that are no models
said.clear()
for thing in (None, 5, "x", [vae.held], object()):
    assert keep(thing) is False
assert len(said) == 5 and said[0] == "memstow: memstow.comfy cannot set keep on a NoneType: it is no model", said

# nobody reports the end of a run
said.clear()
count_of_ends = len(ends())
drive(workflow(seed=5), follow_up=False)
drive(workflow(seed=6), follow_up=False)
drive(workflow(seed=7), follow_up=False)
assert len(ends()) == count_of_ends and [line for line in said
                                         if "run_ended()" in line] == [running.NOT_FOLLOWED_UP], said
assert run_ended() is True and len(ends()) == count_of_ends + 1 and "MODEL" not in models()
# a program that runs one workflow and then waits gets the message NOT_FOLLOWED_UP, too
said.clear()
running.FOLLOW_UP_SECONDS, runs.has_complained = 0.5, False
drive(workflow(seed=8))
time.sleep(2.5)
assert not said, said
drive(workflow(seed=9), follow_up=False)
support.wait_for(lambda: said == [running.NOT_FOLLOWED_UP], 20, "the word to a program without a worker")
# a program with ComfyUI's worker does not get this message, however long its worker is busy elsewhere
said.clear()
runs.has_complained = False
runs.at_work = threading.main_thread()
time.sleep(2.5)
assert not said, said
runs.at_work = None
run_ended()
support.memstow("decisions", os.getpid(), "--check")
