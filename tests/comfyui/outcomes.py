#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""A real ComfyUI on the test double. Policies are applied also after a run in which a node raises an error, after an
interrupt, and after a node runs out of memory. The client gets the error, and models that were to be freed are freed.
Async nodes that run side by side keep to their own scopes, and an asynchronous loader has its model registered."""
from _comfy import Comfy, link, mixed, policy, sample, unet
import support

comfy = Comfy()


def failing(kind, seed):
    """The mixed workflow, whose latent goes through a node that fails."""
    workflow = mixed(seed)
    workflow["fails"] = {"class_type": kind, "inputs": {"value": link("sample"), "seed": seed}}
    workflow["digest"]["inputs"]["value"] = link("fails")
    workflow["image"]["inputs"]["samples"] = link("fails")
    return workflow


def outcome():
    report = comfy.report()
    assert "MODEL" not in comfy.owners() and [o["type"] for o in report["freed"]] == ["MODEL"], report
    assert comfy.owners()["CLIP"]["policy"] == "keep"
    return report["outcome"]


with comfy:
    comfy.run(mixed(1))
    assert outcome() == "ok"
    done = comfy.run(failing("Fail", 2), status="error")
    error = dict(done["status"]["messages"])["execution_error"]
    assert error["exception_type"] == "ValueError" and outcome() == "failed"
    done = comfy.run(failing("RunOut", 3), status="error")
    assert "execution_error" in dict(done["status"]["messages"]) and outcome() == "out-of-memory"

    prompt = comfy.queue(failing("Slow", 4))
    support.wait_for(lambda: comfy.get("/queue")["queue_running"], 30, "the run")
    support.wait_for(lambda: "MODEL" in comfy.owners() and comfy.owners()["MODEL"]["is_loaded"], 30, "the model")
    assert comfy.status_of("/interrupt", b"{}") == 200
    done = comfy.wait(prompt)
    comfy.settle(done)
    assert done["status"]["status_str"] == "error" and outcome() == "cancelled", done["status"]
    comfy.run(mixed(5))
    assert outcome() == "ok"

    plant = {f"plant{i}": {"class_type": "AsyncPlant", "inputs": {"size": 1000 + i, "blocks": 10}} for i in range(3)}
    digests = {f"digest{i}": {"class_type": "Digest", "inputs": {"value": link(f"plant{i}")}} for i in range(3)}
    comfy.run({**plant, **digests})
    nodes = {n["node"]: n["class"] for n in comfy.report()["nodes"]}
    assert {k for k, v in nodes.items() if v == "AsyncPlant"} == set(plant), nodes

    load = {"load": {"class_type": "AsyncLoad", "inputs": {"name": "tiny.safetensors"}}, "p": policy("load", "free")}
    comfy.run({**load, **plant, **digests, **sample("p", 6)})
    freed = comfy.report()["freed"]
    assert [(o["type"], o["origin"], o["rule"]) for o in freed] == [("MODEL", "tiny.safetensors", "patcher")], freed

    # another UNET in a run that fails: it is freed, too
    workflow = failing("Fail", 7)
    workflow["unet"] = unet("other.safetensors")
    comfy.run(workflow, status="error")
    assert outcome() == "failed"
    text = comfy.log()
    assert "memstow: run 1 ok" in text
