#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
"""memstow check --comfy: a workflow in a real ComfyUI passes, and one with a node that keeps 3 MB of each run fails and is
blamed; by names that a baseline from another process has, too."""
import json, os, pathlib, signal, sys
import support
from _comfy import MB, install_pack, link, prepare, sample, unet

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
command = support.comfyui_command(0, folder)
at = command.index("--port")
del command[at:at + 2] # memstow check chooses one
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
    done = support.memstow("check", f"--comfy={name}", *options, "--", *command, status=status, timeout=400, env=environment)
    assert not support.run("pgrep", "-f", str(folder), status=None).stdout, "nothing is left running"
    return done


clean, leaky = workflow("clean.json", 0), workflow("leaky.json", 3)
done = check(clean, "--runs=3", "--warm-up=5", "--update-baseline", "--baseline=base.txt")
text = pathlib.Path("base.txt").read_text()
assert 'model "MODEL WAN21" "tiny.safetensors"' in text and str(folder) not in text, text[:3000]
done = check(leaky, "--runs=6", "--warm-up=4", "--json=o.json", "--github=o.github", status=1)
document = json.loads(pathlib.Path("o.json").read_text())
over = [f for f in document["findings"] if f["verdict"] == "over"]
print(done.stdout, done.stderr[-1500:])
assert document["baseline"] is None and document["runs"] == 6 and document["baseline_runs"] == 2
assert over[0]["kind"] == "total" and over[0]["growth_bytes"] > 8 * MB, over
assert any(f["kind"] == "owner" and f["name_parts"][0] == "KeepsSome" for f in over), over
assert "KeepsSome.keep@keeps_some.py" in done.stderr, done.stderr[-1500:]
assert "keeps_some.py,line=10" in pathlib.Path("o.github").read_text(), pathlib.Path("o.github").read_text()
done = check(clean, "--baseline=base.txt", "--runs=3", "--warm-up=6")
# Python may have taken a mebibyte more for its objects than the other process had by then.
assert done.stdout.split("\n")[0] in ("clean.json: fine", "clean.json: a warning"), done.stdout
