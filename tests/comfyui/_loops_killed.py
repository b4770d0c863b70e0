"""Loops with a prefix are killed many times. Each time they go on from their last committed iteration, and they come to
the same result as a loop that nobody killed. The latent depends on every earlier iteration: an iteration that is lost
or runs twice changes all later latents."""
import concurrent.futures, os, random, signal, subprocess, time

import support
from _comfy import link
from _loops import Loops, node, port

REMEMBER = '''
@node(("LATENT",), latent=("LATENT",), number=INT)
def Remember(self, latent, number): # whole numbers, and reversible
    old = latent["samples"]
    return ({"samples": (old * 3 + torch.arange(old.numel()).reshape(old.shape) + number) % 251},)
NODE_CLASS_MAPPINGS["Remember"] = Remember
'''
STEP = {
    "latent": port("latent"), "number": port("number"), "text": port("text"),
    "sleep": node("Sleepy", number=link("number"), seconds=0.02),
    "mix": node("Remember", latent=link("latent"), number=link("sleep")), "add": node("AddInts", a=link("sleep"), b=1),
    "append": node("Append", text=link("text"), number=link("number")),
    "latent out": port("latent", "mix"), "number out": port("number", "add"), "text out": port("text", "append")
}
BEGIN = {"new": node("NewLatent", size=32), "out": port("latent", "new")}
LOOP = {"inputs": {"number": 0, "text": ""}, "persist_prefix": "killed/loop", "name": "killed",
        "when": [{"port": "number", "op": "==", "value": 0}, None]}
ENDLESS, MORE = 1_000_000, 10 # iterations; MORE: those after the last kill

import _loops # noqa: E402

_loops.NODES += REMEMBER


class Forks:
    """Starts a ComfyUI again in its folder, under memstow, without importing everything anew each time."""

    def __init__(self, comfy):
        self.comfy = comfy
        forked = str(support.ROOT / "tests/comfyui/_forked_main.py")
        command = [forked if str(word).endswith("/_quick_main.py") else word for word in comfy.command]
        command[command.index("-o") + 1] = f"{comfy.folder.name}.%p.mst"
        self.parent = support.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env=comfy.environment)

    def start_again(self):
        (support.HERE / f"{self.comfy.folder.name}.{self.comfy.server.pid}.mst").unlink(missing_ok=True)
        self.parent.stdin.write(f"{self.comfy.log_file}\n")
        self.parent.stdin.flush()
        comfy, comfy.server = self.comfy, Process(int(self.parent.stdout.readline()))
        support.wait_for(lambda: comfy.server.poll() is not None or comfy.get("/system_stats"), 300, "ComfyUI")
        assert comfy.server.poll() is None, comfy.log()[-3000:]


class Process:
    """Has the methods of subprocess.Popen, for a process that is not a child of this process."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return 0 if support.is_gone(self.pid) else None

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, seconds):
        support.wait_for(lambda: support.is_gone(self.pid), seconds, "the end of ComfyUI")


def result(comfy, count):
    """Runs the loop up to this iteration. Returns its values, the latent's digest, and the names of the prefix's
    files."""
    found = comfy.over(comfy.begin(BEGIN, STEP, iterations=count, **LOOP), 400 + count)
    assert found["state"] == "done" and found["committed"] == count, found
    read = {"read": node("DiscomfortLoopResult", loop="killed", unique_id="latent"),
            "show": node("Fingerprint", value=link("read"))}
    digest = comfy.run(read)["outputs"]["show"]["digest"]
    files = sorted(p.name for p in (comfy.folder / "user/memstow").rglob("*"))
    return found["values_of_ports"], digest, files


def killed(name, kills, seed):
    """Kills a loop this many times, at random moments, and starts ComfyUI again. Returns the last ComfyUI, and how many
    iterations were committed just before the last kill."""
    chance, done, comfy = random.Random(seed), 0, Loops(name=name)
    forks = Forks(comfy)
    for _turn in range(kills):
        comfy.begin(BEGIN, STEP, iterations=ENDLESS, **LOOP)
        resumed = comfy.loop("killed", False)["resumed_after"]
        assert resumed >= done, f"iteration {done} was committed, and the loop goes on after iteration {resumed}"
        enough = max(1, resumed + chance.randrange(4)) # with 0 the kill may hit the first iteration of this turn
        support.wait_for(lambda: comfy.loop("killed", False)["committed"] >= enough, 60, f"iteration {enough}")
        time.sleep(0.3 * chance.random())
        now = comfy.loop("killed", False)
        assert now["state"] == "running", now
        done = now["committed"]
        os.kill(comfy.pid(), signal.SIGKILL)
        comfy.server.wait(30)
        forks.start_again()
    return comfy, done


def run(kills, seed, beside=lambda comfy: None, servers=1):
    """Kills loops this many times in all, side by side on this many servers, and compares them with a loop that nobody
    killed. `beside` gets the ComfyUI of that loop."""
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(servers) as pool:
        lanes = list(pool.map(lambda lane: killed(f"killed{lane}", kills // servers, seed + lane), range(servers)))
    count = max(done for _comfy, done in lanes) + MORE
    results = []
    for comfy, _done in lanes:
        results.append(result(comfy, count))
        comfy.stop()
    with Loops(name="whole") as comfy:
        expected = result(comfy, count)
        beside(comfy)
    for found in results:
        assert found == expected, (found, expected) # this also compares the files: one set for the prefix
    print(f"{kills} kills on {servers} servers, {[done for _comfy, done in lanes]} iterations until the last one, "
          f"{count} in all: the same result, and one set of files, in {time.monotonic() - begun:.0f} s")


