#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""The pack's routes: owners, decisions, report, snapshot and trigger. A request gets a ticket, and waits for the end of
the present run. Reports of the last runs are kept, whatever triggers came since. Invalid requests are refused, and so
are requests from pages of other origins. A client can name only files that it was told of. There are at most 20
snapshots, which are listed and deleted one by one. If the writing of a snapshot was killed, the unfinished file is
removed. ComfyUI's page finds help for each node of the pack, and the examples of loops as templates."""
import concurrent.futures, json, os, pathlib, threading, time, urllib.request

import support
from _comfy import Comfy, mixed


def text_of(comfy, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{comfy.port}{path}", timeout=30) as answer:
        return answer.read().decode()


comfy = Comfy(env={"MEMSTOW_POLICY_VAE": "free", "MEMSTOW_POLICY": "keep"})
EXAMPLES = support.ROOT / "examples/loops"
with comfy:
    # The help page of each node names every input of the node, in English and in French. The test leaves out two
    # internal nodes.
    ours = {key: node for key, node in comfy.get("/object_info").items() if node["category"].startswith("memstow")}
    assert len(ours) == 8, list(ours)
    french = comfy.get("/i18n")["fr"]["nodeDefs"]
    for key, node in ours.items():
        if key in ("MemstowLoopLoad", "MemstowLoopSave"):
            continue
        inputs = {name: name for group in node["input"].values() for name in group}
        named = {name: one["name"] for name, one in french[key].get("inputs", {}).items() if "name" in one}
        for address, title, names in ((f"{key}.md", node["display_name"], inputs),
                                      (f"{key}/fr.md", french[key]["display_name"], {**inputs, **named})):
            page = text_of(comfy, f"/extensions/memstow/docs/{address}")
            assert page.startswith(f"# {title}\n"), (address, page)
            for name in names.values():
                assert f"| `{name}` |" in page, (address, name)
    assert sorted(comfy.get("/workflow_templates")["memstow"]) == sorted(path.stem for path in EXAMPLES.glob("*.json"))
    for path in EXAMPLES.glob("*.json"):
        assert comfy.get(f"/api/workflow_templates/memstow/{path.name}") == json.loads(path.read_text()), path

    assert comfy.get("/memstow/report") is None and comfy.get("/memstow/owners")["owners"] == []
    comfy.run(mixed(1, None, None))
    owners = comfy.owners()
    assert set(owners) == {"MODEL", "CLIP"} and owners["MODEL"]["rule"] == "MEMSTOW_POLICY", owners
    report = comfy.report()
    assert report["format"] == "memstow-comfyui-run" and report["freed"][0]["rule"] == "MEMSTOW_POLICY_VAE", report
    assert report["rss"]["before_bytes"] < report["rss"]["peak_bytes"] >= report["rss"]["after_bytes"]
    assert {n["class"]
            for n in report["nodes"]} >= {"UNETLoader", "KSampler"} and all(o["why"] for o in report["owners"])

    decisions = comfy.get("/memstow/decisions")
    assert decisions["lines"] and comfy.get(f"/memstow/decisions?from={decisions['next']}")["lines"] == []
    before = comfy.report()
    for body in (b"", b" ", b"{", b"[1]", b"null", b'"x"', b'{"reason": 1}', b'{"reason": null}', b'{"reason": ["x"]}',
                 b'{"wait": "true"}', b'{"wait": 1}', b'{"wait": null}', json.dumps({"reason": "x" * 201}).encode(),
                 b'{"reason": "\xff"}', b"[" * 200_000):
        assert comfy.status_of("/memstow/trigger", body) == 400, body[:99]
    for path in ("/memstow/trigger", "/memstow/loops"):
        strange = {"Content-Type": "application/json; charset=nonsense"}
        assert comfy.status_of(path, b"{}", strange) == 400, path
    for number in ("x", "", "-1", "9" * 5000, "%D9%A1", "1_0"):
        assert comfy.status_of(f"/memstow/ticket?id={number}", method="GET") == 404, number
    assert comfy.report() == before, "a request that was refused did something"
    for number in ("x", "-1", "1.5", "", "9" * 19, "%D9%A1", "+1", "1_0"):
        assert comfy.status_of(f"/memstow/decisions?from={number}", method="GET") == 400, number
    assert comfy.get(f"/memstow/decisions?from={10 ** 17}")["lines"] == []
    # If there are more lines than fit into one answer, several answers in a row give all of them.
    comfy.run({"lines": {"class_type": "WriteLines", "inputs": {"count": 12_000}}})
    found, following = [], decisions["next"]
    while lines := (answer := comfy.get(f"/memstow/decisions?from={following}"))["lines"]:
        assert len(lines) <= 10_000 and answer["next"] == lines[-1]["n"] + 1, (len(lines), answer["next"])
        found, following = found + lines, answer["next"]
    assert [line["line"] for line in found if line["kind"] == "PLANTED"] == list(range(12_000))

    # One trigger is asked for between runs. Another one is asked for during a run, and must wait for the run's end.
    done = comfy.get("/memstow/trigger", {"wait": True, "reason": "by hand"})
    assert done["done"] and "kept 2" in done["text"], done
    assert comfy.report()["about"] == "a trigger after run 2: request", comfy.report()
    with urllib.request.urlopen(f"http://127.0.0.1:{comfy.port}/memstow/report?format=text", timeout=30) as answer:
        text = answer.read().decode()
    assert text.startswith("memstow: a trigger after run 2: request: kept 2") and "\n    policy: keep" in text, text
    assert max(map(len, text.splitlines())) <= 88, text
    listed = comfy.get("/memstow/runs")
    assert [(one["run"], one["outcome"]) for one in listed["runs"]] == [(1, "ok"), (2, "ok")], listed
    first = listed["runs"][0]
    assert first["text"].startswith("memstow: run 1 ok: kept 2") and first["prompt"] == before["prompt"], first
    assert comfy.get("/memstow/report?run=1") == before and comfy.get("/memstow/report?run=2")["run"] == 2
    for number in ("3", "0", "x", "", "-1"):
        assert comfy.status_of(f"/memstow/report?run={number}", method="GET") == 404, number
    slow = mixed(2, None, None)
    slow["slow"] = {"class_type": "Slow", "inputs": {"value": ["sample", 0], "seed": 1}}
    slow["digest"]["inputs"]["value"] = ["slow", 0]
    prompt = comfy.queue(slow)
    support.wait_for(lambda: comfy.get("/queue")["queue_running"], 30, "the run")
    asked = comfy.get("/memstow/trigger", {})
    assert asked["done"] is False and "when the current run has ended" in asked["text"], asked
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
    assert later["done"] and "kept 2" in later["text"], later
    assert answers[0]["ticket"] > asked["ticket"], (asked, answers)
    assert [comfy.get(f"/memstow/ticket?id={number}") for number in (0, 99, "x", -1, "")] == [None] * 5
    assert comfy.wait(prompt)["status"]["status_str"] == "error"

    # the server chooses the place of snapshots, whatever a client says
    answer = comfy.get("/memstow/snapshot", {"path": "/tmp/evil.mst", "file": "../../evil.mst"})
    file = comfy.folder / "output" / answer["file"]
    assert file.is_file() and file.parent == comfy.folder / "output/memstow", answer
    assert not list(pathlib.Path(comfy.folder).glob("**/evil*"))
    (file.parent / "other.mst").touch() # a file made by hand, and a link: neither is listed, counted or deleted
    (file.parent / "20260101-000000-1-000000.mst").symlink_to(file)
    listed = comfy.get("/memstow/snapshot")
    (one,) = listed["snapshots"]
    assert one["file"] == answer["file"] and one["bytes"] == file.stat().st_size and listed["most"] == 20, listed
    assert abs(one["taken"] - time.time()) < 300, one
    for name in ("", "x", "memstow/other.mst", "other.mst", file.name, f"memstow/../memstow/{file.name}", str(file),
                 "memstow/20260101-000000-1-000000.mst", f"memstow/{file.name}%00", "../evil.mst"):
        assert comfy.status_of(f"/memstow/snapshot?file={name}", method="DELETE") == 404, name
    assert comfy.status_of("/memstow/snapshot", method="DELETE") == 404 and file.exists()
    # Four files whose snapshots were not written to the end. Two are remains: an old file of this ComfyUI, and an old
    # file of a process that is gone. The other two may still be written: a new file, and a file of a process that runs.
    left = [file.parent / f"20260101-000000-{pid}-000001.mst.{name}"
            for pid, name in ((comfy.pid(), "Ab12Cd"), (2**22 + 1, "gone00"), (2**22 + 1, "new000"), (1, "other0"))]
    for one in left:
        one.write_bytes(b"x")
        os.utime(one, (1, 1) if one.suffix != ".new000" else None)
    assert comfy.status_of(f"/memstow/snapshot?file={answer['file']}", method="DELETE") == 200
    answer = comfy.get("/memstow/snapshot", {})
    file = comfy.folder / "output" / answer["file"]
    assert [one.exists() for one in left] == [False, False, True, True], left
    for number in range(18): # looks like snapshots that were taken
        (file.parent / f"20260101-000000-1-{number + 1:06}.mst").write_bytes(b"x")
    with concurrent.futures.ThreadPoolExecutor(4) as pool: # room for one more
        statuses = sorted(pool.map(lambda _: comfy.status_of("/memstow/snapshot", b"{}"), range(4)))
    assert statuses == [200, 409, 409, 409] and len(comfy.get("/memstow/snapshot")["snapshots"]) == 20, statuses
    assert comfy.status_of(f"/memstow/snapshot?file={answer['file']}", method="DELETE") == 200 and not file.exists()
    assert comfy.status_of(f"/memstow/snapshot?file={answer['file']}", method="DELETE") == 404
    assert comfy.get("/memstow/snapshot",
                     {})["file"] in {one["file"] for one in comfy.get("/memstow/snapshot")["snapshots"]}
    assert (file.parent / "other.mst").exists()
    other = {"Origin": "http://evil.example", "Host": f"127.0.0.1:{comfy.port}"}
    for path in ("/memstow/trigger", "/memstow/snapshot"):
        assert comfy.status_of(path, json.dumps({}).encode(), other) == 403, path
    assert comfy.status_of("/memstow/snapshot?file=memstow/20260101-000000-1-000001.mst", None, other, "DELETE") == 403
    assert "memstow: run 1 ok: kept 2" in comfy.log()
