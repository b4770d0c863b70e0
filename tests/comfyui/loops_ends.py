#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""Loops that end early: a node raises an error, the user interrupts, or somebody deletes the loop or empties the queue.
The message names iteration, workflow and node. The loop keeps the values of its last committed iteration. The next loop
and the user's prompts run. A loop goes on if a client posts /free meanwhile. If SIGINT comes while a loop's node runs,
ComfyUI closes in order and leaves no file, and the log names the node."""
import json, os, signal, time

import support
from _comfy import link
from _loops import Loops, counter, node, port

SLOW = {"in": port("n"), "sleep": node("Sleepy", number=link("in"), seconds=0.3),
        "add": node("AddInts", a=link("sleep"), b=1), "out": port("n", "add")}
FAIL = {"in": port("n"), "add": node("AddInts", a=link("in"), b=1),
        "fail": node("FailInt", number=link("add"), fail_at=4), "out": port("n", "fail")}


def files(comfy):
    return sorted(str(p.relative_to(comfy.folder)) for p in comfy.folder.rglob("*") if p.is_file()
                  and "__pycache__" not in p.parts)


with Loops() as comfy:
    comfy.loop_of(counter(), inputs={"n": 0}) # all files and threads that a loop needs exist now
    before = files(comfy)
    other = counter(100)
    found = comfy.loop_of(other | {"in": port("m"), "out": port("m", "add")}, FAIL, inputs={"n": 0, "m": 0},
                          iterations=10, state="failed")
    assert found["error"].startswith("iteration 4, workflow 2: node fail (FailInt): "), found
    assert "as planted" in found["error"], found
    values = found["values_of_ports"]
    assert found["committed"] == 3 and values == {"n": 3, "m": 300}, "nothing of the failed iteration is visible"
    assert "failed after 3 of 10 iterations: iteration 4, workflow 2: node fail (FailInt)" in comfy.log()

    def middle(name):
        """Waits until the loop's second iteration runs."""
        support.wait_for(lambda: comfy.loop(name, False)["committed"] >= 1 and comfy.get("/queue")["queue_running"], 60,
                         "the second iteration")

    def ended(name, *words):
        found = comfy.over(name, 30)
        assert (found["state"] == "cancelled" and found["values_of_ports"] == {"n": found["committed"]}
                and found["committed"] < 40), found
        assert all(word in found["error"]
                   for word in (f"iteration {found['committed'] + 1}, workflow 1", *words)), found
        assert comfy.loop_of(counter(), inputs={"n": 1})["values_of_ports"] == {"n": 2}, "the next loop runs"

    comfy.ran()
    slower = {**SLOW, "sleep": node("Sleepy", number=link("in"), seconds=2.0)}
    name = comfy.begin(slower, inputs={"n": 0}, iterations=40)
    middle(name)
    # The test waits until Sleepy runs, because an earlier interrupt would end another node.
    support.wait_for(lambda: comfy.ran(False).get("Sleepy", 0) > comfy.loop(name, False)["committed"], 60, "Sleepy")
    assert comfy.status_of("/interrupt", b"{}") == 200
    ended(name, "node sleep (Sleepy)", "interrupted")
    name = comfy.begin(SLOW, inputs={"n": 0}, iterations=40)
    middle(name)
    assert comfy.request("DELETE", f"/memstow/loops?name={name.replace(' ', '%20')}")[0] == 200
    ended(name, "cancelled")
    # The loop's prompt waits behind a user's prompt. If the loop is deleted, its prompt leaves the queue, and the
    # user's prompt runs on.
    name = comfy.begin(SLOW, inputs={"n": 0}, iterations=40, name="taken out")
    middle(name)
    user = comfy.queue({"a": node("Sleepy", number=7, seconds=3.0), "show": node("Fingerprint", value=link("a"))})
    support.wait_for(lambda: [item[1] for item in comfy.get("/queue")["queue_running"]] == [user], 30,
                     "the user's prompt")
    assert comfy.request("DELETE", "/memstow/loops?name=taken%20out")[0] == 200
    assert comfy.over(name, 2)["state"] == "cancelled", "it does not wait for the user's prompt"
    assert comfy.wait(user)["outputs"]["show"]["digest"] == ["7"], "the user's prompt was not interrupted"
    # the queue is emptied
    name = comfy.begin(SLOW, inputs={"n": 0}, iterations=40, name="emptied")
    middle(name)
    user = comfy.queue({"a": node("Sleepy", number=8, seconds=2.0), "show": node("Fingerprint", value=link("a"))})
    support.wait_for(lambda: [item[1] for item in comfy.get("/queue")["queue_running"]] == [user], 30,
                     "the user's prompt")
    support.wait_for(lambda: comfy.get("/queue")["queue_pending"], 30, "the loop's prompt")
    assert comfy.status_of("/queue", json.dumps({"clear": True}).encode()) == 200
    ended(name, "out of the queue")
    # /free with both flags in the middle: the same result
    name = comfy.begin(SLOW, inputs={"n": 0}, iterations=8, name="freed")
    for _ in range(3):
        assert comfy.status_of("/free", json.dumps({"unload_models": True, "free_memory": True}).encode()) == 200
        time.sleep(0.4)
    found = comfy.over(name)
    assert found["state"] == "done" and found["values_of_ports"] == {"n": 8}, found
    left = [file for file in files(comfy) if file not in before and not file.startswith("output/memstow/")]
    assert not left, f"files are left: {left}"

    # SIGINT comes in the second iteration, while a node runs that would take a minute. The loop is cancelled.
    comfy.ran()
    long = {**SLOW, "sleep": node("Sleepy", number=link("in"), seconds=60.0)}
    comfy.begin(counter(), long, inputs={"n": 0}, iterations=40, name="closed",
                when=[None, {"port": "n", "op": ">=", "value": 2}])
    support.wait_for(lambda: comfy.ran(False).get("Sleepy"), 60, "the node that runs for long")
    begun = time.monotonic()
    os.kill(comfy.pid(), signal.SIGINT)
    comfy.server.wait(60)
    assert time.monotonic() - begun < 30 and "terminate called" not in comfy.log()
    words = "loop closed: cancelled after 1 of 40 iterations: iteration 2, workflow 2: node sleep (Sleepy): it was "
    assert words in comfy.log(), comfy.log()[-3000:]
    left = [file for file in files(comfy) if file not in before and not file.startswith("output/memstow/")]
    assert not left, f"files are left: {left}"
