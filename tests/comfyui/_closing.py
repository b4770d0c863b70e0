"""Shared by the tests of closing ComfyUI."""
import json, os, signal, time

import support

NAPS = '''
import time
import torch
import comfy.model_management

class Nap:
    """Takes its time inside PyTorch, and can be interrupted in between."""
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seconds": ("INT", {"default": 2})}}

    def run(self, seconds):
        print("naps", flush=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            comfy.model_management.throw_exception_if_processing_interrupted()
            torch.ones(300, 300) @ torch.ones(300, 300)
        print("napped", flush=True)
        return {}

class Stuck(Nap):
    """Cannot."""
    def run(self, seconds):
        print("naps", flush=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            torch.ones(300, 300) @ torch.ones(300, 300)
        return {}

NODE_CLASS_MAPPINGS = {"Nap": Nap, "Stuck": Stuck}
'''


def nap(seconds, kind="Nap"):
    return {"nap": {"class_type": kind, "inputs": {"seconds": seconds}}}


def close(comfy, again_after=None):
    """Sends SIGINT while a workflow runs. If `again_after` is given, sends SIGINT once more, this many seconds after
    the server has stopped. Returns the exit status."""
    support.wait_for(lambda: "naps" in comfy.log(), 60, "the workflow")
    pid = comfy.pid()
    os.kill(pid, signal.SIGINT)
    if again_after is not None:
        support.wait_for(lambda: "Stopped server" in comfy.log(), 30, "the end of the server")
        time.sleep(again_after)
        os.kill(pid, signal.SIGINT)
    return comfy.server.wait(60)


def log(comfy):
    return [json.loads(line) for line in (comfy.folder / "output/memstow/shutdown.log").read_text().splitlines()]


def steps(comfy):
    """ComfyUI's steps in the log: name → result."""
    return {line["name"]: line["result"] for line in log(comfy) if "result" in line
            and line["name"].startswith("ComfyUI")}
