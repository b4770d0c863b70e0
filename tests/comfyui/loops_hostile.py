#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 600
"""Hostile requests to a running ComfyUI, and a hostile folder around it. A request with wrong values in its body is
refused: nothing is queued, and the server goes on. Ids with `/`, `..` and `%` stay within the prefix's folder. The
value b/c of a loop a and the value c of a loop a/b have owners of the same name, but neither loop gets the other's
value. If the prefix's folder is removed while the loop runs, the loop fails. If the folder is replaced by a link,
nothing is written where the link leads. A loop with a prefix may be deleted at any moment, also while it commits: when
it is started again, it goes on from its last committed iteration. Many clients can start, read and delete one loop at
once."""
import concurrent.futures, json, random, shutil, time, urllib.error, urllib.parse, urllib.request

import support
from _comfy import link
from _loops import Loops, counter, node, port

SLOW = {**counter(), "sleep": node("Sleepy", number=link("add"), seconds=0.1), "out": port("n", "sleep")}


def carry(id):
    """id → id + 1."""
    return {"in": port(id), "add": node("AddInts", a=link("in"), b=1), "out": port(id, "add")}


def asked(comfy, method, path, body=None):
    """The status of a request, whose body is sent as it is."""
    request = urllib.request.Request(f"http://127.0.0.1:{comfy.port}{path}", body,
                                     {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def bodies(comfy):
    good = json.dumps(counter())
    for body in ('{"workflows": [%s], "iterations": NaN}', '{"workflows": [%s], "iterations": 1e400}',
                 '{"workflows": [%s], "inputs": {"n": NaN}}', '{"workflows": [%s], "inputs": {"n": 1e400}}',
                 '{"workflows": [%s], "inputs": {"n": ' + "9" * 5000 + '}}',
                 '{"workflows": [%s], "inputs": {"n": ' + "[" * 100_000 + "]" * 100_000 + '}}',
                 '{"workflows": [%s], "inputs": {"' + "n" * 2**20 + '": 1}}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "ram_limit": -1}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "persist_prefix": ""}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "persist_prefix": "a\\nb\\u0000c"}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "persist_prefix": "' + "p" * 2**20 + '"}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "condition": {"port": "n", "op": ["=="], "value": 1}}',
                 '{"workflows": [%s], "inputs": {"n": 1}, "when": [[[]]]}'):
        assert asked(comfy, "POST", "/memstow/loops", body.replace("%s", good).encode()) == 400, body[:200]
    for body in (b"\xff\xfe", b'"', b"[" * 100_000, b'{"workflows": ' + b"[" * 50_000, b"\x00" * 1000):
        assert asked(comfy, "POST", "/memstow/loops", body) == 400, body[:100]
    for workflow in (7, None, [], {}, {"1": []}, {"1": {"class_type": ["AddInts"], "inputs": {}}}, {"nodes": [7]},
                     {"1": {"class_type": "AddInts", "inputs": []}}, "a\nb", "x" * 2**20, "\0",
                     {**counter(), "add": node("AddInts", a=["in", 10**30], b=1)},
                     {**counter(), "add": node("AddInts", a=["in", -1], b=1)},
                     {**counter(), "add": node("AddInts", a=["in", 1], b=1)},
                     {**counter(), "add": node("AddInts", a=link("in"), b={"d": [{}]})},
                     {**counter(), "add": node("AddInts", a=link("in"), b=float("nan"))},
                     {**counter(), "x" * 2**20: node("AddInts", a=1, b=["nobody", 0])},
                     {**counter(), "p": port("a\nb", "add")}, {**counter(), "p": port("a\0b", "add")},
                     {**counter(), "p": port("p" * 2**20, "add")}, {**counter(), "p": port({}, "add")},
                     {**counter(), "p": port("memstow: the inputs", "add")}):
        comfy.refused(workflows=[workflow], inputs={"n": 1})
    for name in ("a\nb", "a\0b", "x" * 2**20, "\ud800"):
        comfy.refused("name", workflows=[counter()], inputs={"n": 1}, name=name)
    for method in ("GET", "DELETE"):
        for name in ("a%00b", "%ff", "x" * 4000, "..", "%0a"):
            assert asked(comfy, method, f"/memstow/loops?name={name}") == 404, (method, name)
        assert 400 <= asked(comfy, method, f"/memstow/loops?name={'x' * 2**20}") < 500
    for start in (dict(workflow_paths="[7]"), dict(workflow_paths="{"), dict(workflow_paths=""),
                  dict(initial_inputs="[1]"), dict(initial_inputs='{"n": '), dict(initial_inputs="n"),
                  dict(condition="n > 1"), dict(condition='{"port": "n", "op": "is", "value": 1}'), dict(when="7"),
                  dict(persist_prefix="../../x"), dict(name="a\nb")):
        given = {"workflow_paths": json.dumps(counter()), "max_iterations": 1, "initial_inputs": "n: 1", **start}
        done = comfy.run({"start": node("DiscomfortLoopExecutor", **given)}, status="error")
        words = json.dumps(done["status"]["messages"])
        assert any(f'{kind}Error"' in words for kind in ("Value", "graph.Loop")), (start, words)
    assert comfy.get("/memstow/loops")["loops"] == []


def names(comfy):
    ids = ("a/b", "../../x", "%2F", "ä" * 80, ".", "b/c")
    found = comfy.loop_of(*map(carry, ids), inputs={id: 1 for id in ids}, iterations=3, persist_prefix="odd names",
                          name="odd")
    assert found["values_of_ports"] == {id: 4 for id in ids}, found
    folder = comfy.folder / "user/memstow"
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert len(files) == len(ids) + 3 and {str(path.parent) for path in files} == {"odd names.state"}, files
    # both of these loops have an owner state:a/b/c
    first = comfy.loop_of(carry("b/c"), inputs={"b/c": 1}, name="a", iterations=2)
    second = comfy.loop_of(carry("c"), inputs={"c": 100}, name="a/b", iterations=2)
    assert (first["values_of_ports"], second["values_of_ports"]) == ({"b/c": 3}, {"c": 102}), (first, second)
    assert asked(comfy, "DELETE", "/memstow/loops?name=a") == 200
    assert comfy.loop("a/b")["values_of_ports"] == {"c": 102}
    # A second loop with the name of a first loop is refused while the first loop runs. When the first loop has ended,
    # the second loop takes its place.
    comfy.begin(SLOW, inputs={"n": 0}, iterations=1000, name="a b")
    assert comfy.post(workflows=[counter()], inputs={"n": 0}, name="a b") == (
        400, "loop a b runs already: cancel it, or take another name")
    assert asked(comfy, "DELETE", "/memstow/loops?name=a%20b") == 200 and comfy.over("a b")["state"] == "cancelled"
    assert comfy.loop_of(counter(), inputs={"n": 7}, name="a b")["values_of_ports"] == {"n": 8}
    # a text of a megabyte is a value as any other
    text = {"in": port("t"), "add": node("Append", text=link("in"), number=1), "out": port("t", "add")}
    long = "x" * 2**20
    assert comfy.loop_of(text, inputs={"t": long}, iterations=2)["values_of_ports"] == {"t": long + "1,1,"}


def folders(comfy):
    folder, outside = comfy.folder / "user/memstow", support.HERE / "outside"
    outside.mkdir()

    def second_iteration(name):
        support.wait_for(lambda: comfy.loop(name, False)["committed"] >= 2, 60, "the second iteration")

    # If the prefix's folder is removed, the loop fails, because it cannot keep its values any more. If the loop is
    # started again, it begins anew.
    comfy.begin(SLOW, inputs={"n": 0}, iterations=10_000, persist_prefix="gone", name="gone")
    second_iteration("gone")
    shutil.rmtree(folder / "gone.state")
    found = comfy.over("gone", 60)
    assert found["state"] == "failed" and found["values_of_ports"] == {"n": found["committed"]}, found
    # the put fails, or the commit after it
    assert (f"iteration {found['committed'] + 1}, workflow 1: node out (DiscomfortPort)" in found["error"]
            and ("it does not exist" in found["error"] or "cannot be kept" in found["error"])), found
    assert asked(comfy, "DELETE", "/memstow/loops?name=gone") == 200 and not (folder / "gone.state").exists()
    found = comfy.loop_of(SLOW, inputs={"n": 0}, iterations=2, persist_prefix="gone", name="gone")
    assert found["resumed_after"] == 0 and found["values_of_ports"] == {"n": 2}, found
    # If the folder is replaced by a link, nothing is written where the link leads, and the next loop with this prefix
    # is refused.
    comfy.begin(SLOW, inputs={"n": 0}, iterations=10_000, persist_prefix="moved", name="moved")
    second_iteration("moved")
    (folder / "moved.state").rename(folder / "elsewhere")
    (folder / "moved.state").symlink_to(outside)
    seen = comfy.loop("moved", False)["committed"]
    support.wait_for(lambda: (now := comfy.loop("moved", False))["committed"] > seen + 1 or now["state"] != "running",
                     60, "two more iterations")
    assert asked(comfy, "DELETE", "/memstow/loops?name=moved") == 200
    found = comfy.over("moved", 60)
    assert found["values_of_ports"] == {"n": found["committed"]}, found
    assert asked(comfy, "DELETE", "/memstow/loops?name=moved") == 200
    assert not list(outside.iterdir()) and (folder / "moved.state").is_symlink()
    status, words = comfy.post(workflows=[SLOW], inputs={"n": 0}, persist_prefix="moved")
    assert status == 400 and "contains a link" in words, (status, words)
    assert not list(outside.iterdir())


def deleted(comfy):
    """Deletes a loop with a prefix at random moments, and starts it again. Each time it goes on from the last committed
    iteration that it had reported before it was deleted."""
    chance, done = random.Random(5), 0
    step = {**counter(), "text": port("text"), "append": node("Append", text=link("text"), number=link("in")),
            "text out": port("text", "append")}
    loop = {"inputs": {"n": 0, "text": "x" * 300_000}, "persist_prefix": "deleted", "name": "deleted"}
    for _turn in range(15):
        comfy.begin(step, iterations=100_000, **loop)
        begun = comfy.loop("deleted", False)
        assert begun["resumed_after"] == done, (begun, done)
        support.wait_for(lambda: comfy.loop("deleted", False)["committed"] > done, 60, "an iteration")
        time.sleep(chance.random() * 0.1)
        assert asked(comfy, "DELETE", "/memstow/loops?name=deleted") == 200
        found = comfy.over("deleted", 60)
        done = found["committed"]
        expected = {"n": done, "text": "x" * 300_000 + "".join(f"{n}," for n in range(done))}
        assert found["state"] == "cancelled" and found["values_of_ports"] == expected, (found["state"], done)
        assert asked(comfy, "DELETE", "/memstow/loops?name=deleted") == 200
    files = sorted(path.name.split(".")[0] for path in (comfy.folder / "user/memstow/deleted.state").iterdir())
    assert files == ["manifest", "memstow%3A%20the%20inputs", "n", "text"], files


def crowd(comfy):
    body = json.dumps({"workflows": [counter()], "inputs": {"n": 0}, "iterations": 3, "name": "crowd"}).encode()

    def client(number):
        chance = random.Random(number)
        return [asked(comfy, *chance.choice((("POST", "/memstow/loops", body), ("GET", "/memstow/loops"),
                                             ("GET", "/memstow/loops?name=crowd&values=1"),
                                             ("GET", "/memstow/loops?name=crowd&values=raw"),
                                             ("DELETE", "/memstow/loops?name=crowd")))) for _ in range(30)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = {status for found in pool.map(client, range(8)) for status in found}
    assert statuses <= {200, 400, 404} and 200 in statuses, statuses
    while asked(comfy, "DELETE", "/memstow/loops?name=crowd") == 200:
        time.sleep(0.1)
    assert comfy.loop_of(counter(), inputs={"n": 1}, name="crowd")["values_of_ports"] == {"n": 2}


with Loops() as comfy:
    bodies(comfy)
    names(comfy)
    folders(comfy)
    deleted(comfy)
    crowd(comfy)
