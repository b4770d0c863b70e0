"""Lifecycles of a real ComfyUI on the CPU with the shipped scenario, for shutdown_no_leaks.py (3 lifecycles) and
shutdown_no_leaks_long.py (102). memstow's node pack ends ComfyUI in order. Without the pack, a ComfyUI 0.3.75 that is
closed while a workflow runs aborts ("terminate called without an active exception")."""
import json, os, pathlib, re, shlex, shutil, sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "real"))
import _workflow # noqa: E402

NODES = '''
import pathlib, time
import comfy.model_management, folder_paths

class Nap:
    """Takes its time, and can be interrupted."""
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seconds": ("INT", {"default": 2}), "after": ("LATENT",)}}

    def run(self, seconds, after):
        output = pathlib.Path(folder_paths.get_output_directory())
        (output / f"began-{seconds}").touch()
        (output / f"naps-{seconds}").touch()
        try:
            for _ in range(seconds * 20):
                comfy.model_management.throw_exception_if_processing_interrupted()
                time.sleep(0.05)
        finally:
            (output / f"naps-{seconds}").unlink()
        return {}

NODE_CLASS_MAPPINGS = {"Nap": Nap}
'''
EXAMPLE = support.ROOT / "examples/lifecycle"


def scenario(program):
    """Returns the example's scenario with `program` in its line "program:", and without its line "folder:"."""
    lines = (EXAMPLE / "comfyui.scenario").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("folder:", "program:"))]
    assert len(kept) == len(lines) - 2
    return "\n".join([f"program: {program}", *kept, ""])


def prepare(quick=False):
    """Prepares a ComfyUI with everything that the scenario needs, in the present folder. quick: see
    tests/comfyui/_quick_main.py."""
    folder = support.HERE / "comfyui"
    command = [word.replace("4711", "{port}") for word in map(str, support.comfyui_command(4711, folder, quick=quick))]
    _workflow.prepare(folder)
    (folder / "custom_nodes/lifecycle_nodes.py").write_text(NODES)
    (folder / "custom_nodes/memstow").symlink_to(support.ROOT / "tools/comfyui")
    sampling = _workflow.sampling(1)
    del sampling["save"]
    for name, seconds in (("workflow", 2), ("second", 30), ("third", 31)):
        run = {**sampling, "nap": {"class_type": "Nap", "inputs": {"seconds": seconds, "after": ["sample", 0]}}}
        pathlib.Path(f"{name}.json").write_text(json.dumps(run))
    shutil.copy(EXAMPLE / "child.json", ".")
    (folder / "custom_nodes/child_server.py").symlink_to(EXAMPLE / "child_server.py")
    text = scenario(shlex.join(command).replace("'{port}'", "{port}"))
    # Two prompts are queued behind the workflow. On a busy machine, the workflow may end before the close. Then the
    # first prompt runs, and the second prompt still waits. The program is closed while the workflow naps. So even on a
    # slow machine, the close has to wait for the rest of the nap only, not for the sampling.
    queued = "behind: prompt workflow.json within 2m\n"
    assert queued in text
    naps = f"behind: file {folder / 'output/naps-2'} within 2m\n"
    text = text.replace(queued, queued.replace("workflow", "second") + queued.replace("workflow", "third") + naps)
    pathlib.Path("comfyui.scenario").write_text(
        f"{text}set: PYTHONPATH={support.ROOT / 'tests'}:{support.ROOT / 'tools/python'}\n")


TESTS = ("T1", "T2", "T3", "T4", "T5", "T6")
# Warnings that do not fail the test. lifecycle gives the last of these warnings if a thread still drains five seconds
# after the close: Python waits for this thread at exit.
WARNINGS = re.compile(r"took [12]\d\.\d s to close, more than 10 s|"
                      r"grew by (\d+(\.\d+)? [KM]i?B|\d+ B), measured from 10 s after the close|"
                      r"\d+ Python threads? (is not a daemon|are not daemons): Python waits for (it|them) at exit")


def check(life):
    """Asserts that the program was gone within 30 s and left nothing. Also asserts a limit on its growth, which is
    measured from ten seconds after the close. This limit is 10 % of the program's size at the close, but at least 1 MiB
    and at most 5 MiB."""
    assert not life["left_processes"] and not life["left_traces"] and life["exit_status"] == 0, life
    assert life["verdict"] != "failed" and life["gone_seconds"] is not None and life["gone_seconds"] <= 30, life
    assert life["growth_bytes"] <= 5 << 20 and life["growth_bytes"] <= max(1 << 20, life["close_bytes"] / 10), life
    assert life["verdict"] == "warning" or (life["gone_seconds"] <= 10 and life["growth_bytes"] <= 1 << 20), life
    assert all(WARNINGS.fullmatch(reason) for reason in life["reasons"]), life


def is_starved():
    """Whether more than two programs want each processor. On such a machine a shutdown of 3 s took 16 s."""
    return os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0))


def lifecycles(tests=TESTS):
    """Runs each test once, and checks the life of each test. All lives must be complete."""
    done = support.memstow("lifecycle", "--json", f"--test={','.join(tests)}", "--repeat=1", "--stacks=none",
                           "comfyui.scenario", status=None, timeout=600)
    document = json.loads(done.stdout or "null")
    assert document, done.stderr
    lives = document["lives"]
    assert [life["test"] for life in lives] == list(tests), (done.stderr, lives)
    for life in lives:
        print(life["test"], life["verdict"], life["reasons"], "gone", life["gone_seconds"], "peak",
              life["peak_bytes"] >> 20, "close", life["close_bytes"] >> 20, "MiB,", life["threads"], "threads,",
              life["processes"], "processes", flush=True)
        check(life)
    assert "T3" not in tests or not pathlib.Path("comfyui/output/began-31").exists(), "what waited in the queue was run"
    assert "T3" not in tests or pathlib.Path("comfyui/output/began-2").exists()
    return lives
