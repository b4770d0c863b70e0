#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""The pack's routes: owners, decisions, report, snapshot and trigger; requests wait for the end of the run that is on and get
their ticket; pages of other origins are refused as ComfyUI refuses them, and a client never names a file."""
import json, pathlib, threading, time, urllib.request

import support
from _comfy import Comfy, mixed

comfy = Comfy(env={"MEMSTOW_POLICY_VAE": "free", "MEMSTOW_POLICY": "keep"})
with comfy:
    assert comfy.get("/memstow/report") is None and comfy.get("/memstow/owners")["owners"] == []
    comfy.run(mixed(1, None, None))
    owners = comfy.owners()
    assert set(owners) == {"MODEL", "CLIP"} and owners["MODEL"]["rule"] == "MEMSTOW_POLICY", owners
    report = comfy.report()
    assert report["format"] == "memstow-comfyui-run" and report["freed"][0]["rule"] == "MEMSTOW_POLICY_VAE", report
    assert report["rss"]["before_bytes"] < report["rss"]["peak_bytes"] >= report["rss"]["after_bytes"]
    assert {n["class"] for n in report["nodes"]} >= {"UNETLoader", "KSampler"} and all(o["why"] for o in report["owners"])

    decisions = comfy.get("/memstow/decisions")
    assert decisions["lines"] and comfy.get(f"/memstow/decisions?from={decisions['next']}")["lines"] == []
    assert comfy.status_of("/memstow/trigger", b"{") == comfy.status_of("/memstow/trigger", b"[1]") == 400
    assert comfy.get("/memstow/decisions?from=x") is None
    # more lines than one answer has: none is left out
    comfy.run({"lines": {"class_type": "WriteLines", "inputs": {"count": 12_000}}})
    found, following = [], decisions["next"]
    while lines := (answer := comfy.get(f"/memstow/decisions?from={following}"))["lines"]:
        assert len(lines) <= 10_000 and answer["next"] == lines[-1]["n"] + 1, (len(lines), answer["next"])
        found, following = found + lines, answer["next"]
    assert [line["line"] for line in found if line["kind"] == "PLANTED"] == list(range(12_000))

    # a trigger while nothing runs, and one that has to wait for the end of a run
    done = comfy.get("/memstow/trigger", {"wait": True, "reason": "by hand"})
    assert done["done"] and "kept 2" in done["text"], done
    assert comfy.report()["about"] == "a trigger after run 2: request", comfy.report()
    with urllib.request.urlopen(f"http://127.0.0.1:{comfy.port}/memstow/report?format=text", timeout=30) as answer:
        text = answer.read().decode()
    assert text.startswith("memstow: a trigger after run 2: request: kept 2") and "\n    policy: keep" in text, text
    assert max(map(len, text.splitlines())) <= 88, text
    slow = mixed(2, None, None)
    slow["slow"] = {"class_type": "Slow", "inputs": {"value": ["sample", 0], "seed": 1}}
    slow["digest"]["inputs"]["value"] = ["slow", 0]
    prompt = comfy.queue(slow)
    support.wait_for(lambda: comfy.get("/queue")["queue_running"], 30, "the run")
    asked = comfy.get("/memstow/trigger", {})
    assert asked["done"] is False and "when the run that is on has ended" in asked["text"], asked
    assert comfy.get(f"/memstow/ticket?id={asked['ticket']}") == asked
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(comfy.get("/memstow/trigger", {"wait": True})))
    waiting.start()
    time.sleep(1)
    assert not answers, "a request was served in the middle of a run"
    assert comfy.status_of("/interrupt", b"{}") == 200
    waiting.join(60)
    assert answers and answers[0]["done"], answers
    later = comfy.get(f"/memstow/ticket?id={asked['ticket']}")
    assert later["done"] and "kept 2" in later["text"] and answers[0]["ticket"] > asked["ticket"], (asked, later, answers)
    assert [comfy.get(f"/memstow/ticket?id={number}") for number in (0, 99, "x", -1, "")] == [None] * 5
    assert comfy.wait(prompt)["status"]["status_str"] == "error"

    # snapshots go where the server says, whatever a client says
    answer = comfy.get("/memstow/snapshot", {"path": "/tmp/evil.mst", "file": "../../evil.mst"})
    file = comfy.folder / "output" / answer["file"]
    assert file.is_file() and file.parent == comfy.folder / "output/memstow", answer
    assert not list(pathlib.Path(comfy.folder).glob("**/evil*"))
    other = {"Origin": "http://evil.example", "Host": f"127.0.0.1:{comfy.port}"}
    for path in ("/memstow/trigger", "/memstow/snapshot"):
        assert comfy.status_of(path, json.dumps({}).encode(), other) == 403, path
    assert "memstow: run 1 ok: kept 2" in comfy.log()
