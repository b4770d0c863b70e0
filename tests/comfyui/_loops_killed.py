"""A loop with a prefix that is killed again and again goes on each time from its last committed iteration, to the same
result."""
import os, random, signal, time

import support
from _comfy import link
from _loops import Loops, node, port

STEP = {
    "latent": port("latent"), "number": port("number"), "text": port("text"), "sleep": node(
        "Sleepy", number=link("number"),
        seconds=0.02), "mix": node("Mix", latent=link("latent"), number=link("sleep")), "add": node(
            "AddInts", a=link("sleep"), b=1), "append": node("Append", text=link("text"), number=link("number")),
    "latent out": port("latent", "mix"), "number out": port("number", "add"), "text out": port("text", "append")
}
BEGIN = {"new": node("NewLatent", size=32), "out": port("latent", "new")}
LOOP = {"inputs": {"number": 0, "text": ""}, "persist_prefix": "killed/loop", "name": "killed",
        "when": [{"port": "number", "op": "==", "value": 0}, None]}


def digest(comfy):
    read = {
        "read": node("DiscomfortLoopResult", loop="killed", unique_id="latent"),
        "show": node("Fingerprint", value=link("read"))
    }
    return comfy.run(read)["outputs"]["show"]["digest"]


def run(kills, seed, beside=lambda comfy: None):
    """Kills it so many times, at random moments, and compares what it comes to with a loop that nobody killed. `beside`
    gets the ComfyUI of that one."""
    chance, count = random.Random(seed), max(60, 25 * kills) # in the second before a kill at most 50 iterations run
    loop = LOOP | {"iterations": count}
    with Loops(name="whole") as comfy:
        assert comfy.over(comfy.begin(BEGIN, STEP, **loop), 400 + count)["committed"] == count
        expected, values = digest(comfy), comfy.loop("killed")["values_of_ports"]
        files = sorted(p.name for p in (comfy.folder / "user/memstow").rglob("*"))
        beside(comfy)
    done = 0
    state = support.HERE / "killed/user/memstow"
    for turn in range(kills + 1):
        comfy = Loops(name="killed") if turn == 0 else again(comfy)
        comfy.begin(BEGIN, STEP, **loop)
        found = comfy.loop("killed", False)
        assert found["resumed_after"] >= done and (turn != 1 or found["resumed_after"] < count), (found, done)
        if turn == kills:
            break
        support.wait_for(lambda: comfy.loop("killed", False)["committed"], 60, "the first iteration")
        time.sleep(chance.random())
        done = comfy.loop("killed", False)["committed"]
        os.kill(comfy.pid(), signal.SIGKILL)
        comfy.server.wait(30)
    found = comfy.over("killed", 400 + count)
    assert found["state"] == "done" and found["committed"] == count and found["values_of_ports"] == values, (
        found, values)
    assert digest(comfy) == expected
    assert sorted(p.name for p in state.rglob("*")) == files, "one set of files for the prefix"
    comfy.stop()


def again(before):
    """ComfyUI again, in the same folder."""
    log = open(before.log_file, "a")
    command = before.command
    before.server = support.start(*command, stdout=log, stderr=log, env=before.environment)
    support.wait_for(lambda: before.server.poll() is not None or before.get("/system_stats"), 300, "ComfyUI answering")
    assert before.server.poll() is None, before.log()[-3000:]
    return before
