#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
# long
"""Several workflows and loops at once. With the option `when`, each of two branches runs in its turn. The option
`condition` stops a loop at the expected iteration. A loop makes no more iterations than it may. A batch goes on after
an element that failed. Two loops and a user's prompts take turns, and no value of one loop reaches another. The Loop
node starts a loop and returns before the loop has run, also for a saved workflow. Routes list and delete loops, but not
for a page of another site. A script outside of ComfyUI runs loops, too."""
import json

import support
from _comfy import link
from _loops import Loops, counter, node, port

UP = {**counter(3), "text": node("Append", text="up", number=link("in")), "branch": port("branch", "text")}
DOWN = {**counter(-10), "text": node("Append", text="down", number=link("in")), "branch": port("branch", "text")}
BRANCHES = [{"port": "n", "op": "<", "value": 10}, {"port": "n", "op": ">=", "value": 10}]

with Loops() as comfy:
    seen = []
    for iterations in range(1, 7):
        found = comfy.loop_of(UP, DOWN, inputs={"n": 4}, iterations=iterations, when=BRANCHES)
        seen.append((found["values_of_ports"]["n"], found["values_of_ports"]["branch"]))
    # The second branch looks at the value that the first one has just given. So the second iteration goes from 7 to 10,
    # and on to 0.
    assert seen == [(7, "up4,"), (0, "down10,"), (3, "up0,"), (6, "up3,"), (9, "up6,"), (2, "down12,")], seen
    comfy.ran()
    found = comfy.loop_of(counter(1), inputs={"n": 0}, iterations=50, condition={"port": "n", "op": ">=", "value": 7})
    assert (found["committed"] == found["iteration"] == 7 and found["values_of_ports"] == {"n": 7}
            and comfy.ran() == {"AddInts": 7}), found
    found = comfy.loop_of(counter(1), inputs={"n": 0}, iterations=5, condition={"port": "n", "op": ">=", "value": 7})
    assert found["committed"] == 5 and found["values_of_ports"] == {"n": 5}, found
    # a batch: the third element fails
    batch = {"in": port("n"), "fail": node("FailInt", number=link("in"), fail_at=30), "out": port("m", "fail")}
    found = comfy.loop_of(batch, inputs={"n": [10, 20, 30, 40]}, independent=True)
    assert found["values_of_ports"] == {"m": [10, 20, None, 40]}, found
    assert (len(found["failures"]) == 1 and found["failures"][0]["iteration"] == 3
            and "node fail (FailInt)" in found["failures"][0]["error"]), found
    read = {"read": node("DiscomfortLoopResult", loop=found["name"], unique_id="m"),
            "show": node("Fingerprint", value=link("read"))}
    digest = comfy.run(read)["outputs"]["show"]["digest"]
    assert digest == ["10", "20", "None", "40"], digest

    # two loops and a user's prompts at once
    comfy.ran()
    slow = {"in": port("n"), "sleep": node("Sleepy", number=link("in"), seconds=0.05),
            "add": node("AddInts", a=link("sleep"), b=1), "out": port("n", "add")}
    first = comfy.begin(slow, inputs={"n": 0}, iterations=20, name="first")
    second = comfy.begin({**slow, "add": node("AddInts", a=link("sleep"), b=100)}, inputs={"n": 0}, iterations=20,
                         name="second")
    done = [comfy.wait(comfy.queue({"a": node("AddInts", a=i, b=1), "show": node("Fingerprint", value=link("a"))}), 60)
            for i in range(5)]
    assert [d["outputs"]["show"]["digest"] for d in done] == [[repr(i + 1)] for i in range(5)]
    between = [comfy.loop(name, False)["committed"] for name in (first, second)]
    assert max(between) < 20, "the user's prompts did not wait for the loops"
    assert comfy.over(first)["values_of_ports"] == {"n": 20} and comfy.over(second)["values_of_ports"] == {"n": 2000}
    names = [loop["name"] for loop in comfy.get("/memstow/loops")["loops"]]
    assert {"first", "second"} <= set(names), names
    assert comfy.request("DELETE", "/memstow/loops?name=first")[0] == 200
    assert comfy.request("DELETE", "/memstow/loops?name=first")[0] == 404
    assert comfy.request("GET", "/memstow/loops?name=first")[0] == 404

    # The Loop node returns at once, also if its workflow is a saved one and its inputs are given as lines of text.
    saved = comfy.folder / "user/default/workflows"
    saved.mkdir(parents=True, exist_ok=True)
    (saved / "count up.json").write_text(json.dumps(slow))
    start = node("DiscomfortLoopExecutor", workflow_paths="count up", max_iterations=3, initial_inputs="n: 5",
                 name="by node", condition='{"port": "n", "op": ">", "value": 100}')
    done = comfy.run({"start": start, "show": node("Fingerprint", value=link("start"))})
    assert done["outputs"]["show"]["digest"] == ["'by node'"] and comfy.over("by node")["values_of_ports"] == {"n": 8}
    assert comfy.loop("by node")["workflows"] == ["count up"]
    again = comfy.run({"start": start, "show": node("Fingerprint", value=link("start"))})
    assert (comfy.over("by node")["seconds"]
            and again["outputs"]["show"]["digest"] == ["'by node'"]), "it starts each time it is queued"
    # a page of another site may neither start nor delete a loop
    other = {"Origin": "http://evil.example", "Host": f"127.0.0.1:{comfy.port}"}
    assert comfy.status_of("/memstow/loops", json.dumps({"workflows": [counter()], "inputs": {"n": 1}}).encode(),
                           other) == 403
    assert comfy.status_of("/memstow/loops?name=second", None, other, "DELETE") == 403

    # a script outside of ComfyUI
    import sys
    sys.path.insert(0, str(support.ROOT / "tools/python"))
    import memstow_loops
    server = f"http://127.0.0.1:{comfy.port}"
    assert memstow_loops.run_sequential([counter(2)], {"n": 1}, 3, server=server) == {"n": 7}
    assert memstow_loops.run_sequential(["count up"], {"n": 1}, 1, server=server) == {"n": 2}
    for words, call in (
            ("no value", lambda: memstow_loops.run_sequential([counter()], server=server)),
            ("callables", lambda: memstow_loops.run_sequential([counter()], {"n": 1}, condition=len, server=server)),
            ("JSON", lambda: memstow_loops.run_sequential([counter()], {"n": object()}, server=server)),
            ("iteration 2",
             lambda: memstow_loops.run_sequential(
                 [{**counter(), "out": port("n", "fail"), "fail": node("FailInt", number=link("add"), fail_at=3)}],
                 {"n": 1}, 5, server=server))):
        try:
            raise AssertionError(f"it was not refused: {call()}")
        except memstow_loops.LoopError as error:
            assert words in str(error), error
    import urllib.request
    info = json.loads(urllib.request.urlopen(f"{server}/object_info", timeout=30).read())
    ports = memstow_loops.discover_ports(counter(), info).ports
    assert [(p.id, p.mode, p.type) for p in ports] == [("n", "INPUT", "INT"), ("n", "OUTPUT", "INT")]
    assert not [n for n in comfy.get("/history").values() if "memstow" in json.dumps(n["prompt"][2]).lower()
                and "Executor" not in json.dumps(n["prompt"][2])]
