"""Lifecycles of a real ComfyUI on the CPU by the scenario that is shipped, as shutdown_no_leaks.py (6) and
shutdown_no_leaks_long.py (102) want them. memstow's node pack ends it in order: by itself, ComfyUI 0.3.75 that is closed while a workflow runs aborts ("terminate called without an
active exception")."""
import json, pathlib, shlex, shutil, sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "real"))
import _workflow # noqa: E402

NODES = '''
import time
import comfy.model_management

class Nap:
    """Takes its time, and can be interrupted."""
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seconds": ("INT", {"default": 2}), "after": ("LATENT",)}}

    def run(self, seconds, after):
        for _ in range(seconds * 20):
            comfy.model_management.throw_exception_if_processing_interrupted()
            time.sleep(0.05)
        return {}

NODE_CLASS_MAPPINGS = {"Nap": Nap}
'''
EXAMPLE = support.ROOT / "examples/lifecycle"


def scenario(program):
    """The shipped one, of that program, which needs no folder."""
    lines = (EXAMPLE / "comfyui.scenario").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("folder:", "program:"))]
    assert len(kept) == len(lines) - 2
    return "\n".join([f"program: {program}", *kept, ""])


def lifecycles(repeat, *options, tests="T1,T2,T3,T4,T5,T6"):
    """Runs them and returns their lives, all of which are complete."""
    folder = support.HERE / "comfyui"
    command = [word.replace("4711", "{port}") for word in map(str, support.comfyui_command(4711, folder))]
    _workflow.prepare(folder)
    (folder / "custom_nodes/lifecycle_nodes.py").write_text(NODES)
    (folder / "custom_nodes/memstow").symlink_to(support.ROOT / "tools/comfyui")
    sampling = _workflow.sampling(1)
    del sampling["save"]
    run = {**sampling, "nap": {"class_type": "Nap", "inputs": {"seconds": 2, "after": ["sample", 0]}}}
    pathlib.Path("workflow.json").write_text(json.dumps(run))
    shutil.copy(EXAMPLE / "child.json", ".")
    (folder / "custom_nodes/child_server.py").symlink_to(EXAMPLE / "child_server.py")
    pathlib.Path("comfyui.scenario").write_text(scenario(shlex.join(command).replace("'{port}'", "{port}")) +
                                                f"set: PYTHONPATH={support.ROOT / 'tests'}:{support.ROOT / 'tools/python'}\n")
    done = support.memstow("lifecycle", "--json", f"--test={tests}", f"--repeat={repeat}", *options, "comfyui.scenario",
                           status=None, timeout=repeat * 600)
    document = json.loads(done.stdout or "null")
    assert document, done.stderr
    lives = document["lives"]
    assert len(lives) == repeat * len(tests.split(",")), (done.stderr, lives)
    for life in lives:
        print(life["test"], life["verdict"], life["reasons"], "gone", life["gone_seconds"], "peak", life["peak_bytes"] >> 20,
              "close", life["close_bytes"] >> 20, "MiB,", life["threads"], "threads,", life["processes"], "processes")
    return lives
