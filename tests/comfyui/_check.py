"""Shared by the tests of memstow check --comfy: a folder of ComfyUI with the node pack, and a node that keeps some
memory of each run."""
import json, os, pathlib

import support
from _comfy import install_pack, link, prepare, sample, unet

LEAK = '''
import torch
kept = []
class KeepsSome:
    CATEGORY, FUNCTION, RETURN_TYPES, OUTPUT_NODE = "test", "keep", (), True
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("LATENT",), "megabytes": ("INT", {"default": 3})}}
    def keep(self, value, megabytes):
        kept.append(torch.zeros(megabytes * 2**18)) if megabytes else None
        return {}
NODE_CLASS_MAPPINGS = {"KeepsSome": KeepsSome}
'''
folder = support.HERE / "comfyui"
command = support.comfyui_command(0, folder, quick=True)
at = command.index("--port")
del command[at:at + 2] # memstow check chooses a port
prepare(folder, ffn=4096)
install_pack(folder)
(folder / "custom_nodes/keeps_some.py").write_text(LEAK)
environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
environment["PYTHONPATH"] = str(support.ROOT / "tests")


def workflow(name, megabytes):
    nodes = {"unet": unet(), **sample("unet")}
    nodes["keeps"] = {"class_type": "KeepsSome", "inputs": {"value": link("sample"), "megabytes": megabytes}}
    pathlib.Path(name).write_text(json.dumps(nodes))
    return name


def check(name, *options, status=0):
    done = support.memstow("check", f"--comfy={name}", *options, "--", *command, status=status, timeout=400,
                           env=environment)
    assert not support.run("pgrep", "-f", str(folder), status=None).stdout, "nothing is left running"
    return done


def compare_with_itself():
    """Compares the last runs of a clean workflow with its first runs. Returns the document, and the growth of its
    total."""
    done = check(workflow("clean.json", 0), "--runs=9", "--warm-up=4", "--json=clean.out", "--text")
    document = json.loads(pathlib.Path("clean.out").read_text())
    assert document["baseline"] is None and document["baseline_runs"] == 3 and document["runs"] == 9, document
    print(done.stdout)
    return document, next(f["growth_bytes"] for f in document["findings"] if f["kind"] == "total")
