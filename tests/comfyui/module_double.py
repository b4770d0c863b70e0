#!/usr/bin/env python3
# needs: cc
"""Tests the Python module memstow on the test double of the library: how it calls the ABI and uses the answers, and
that scopes follow coroutines and threads. The test runs itself again, with the double in the process."""
import asyncio, ctypes, errno, os, sys, threading

if "libdouble" not in os.environ.get("LD_PRELOAD", ""):
    import support
    import _double
    support.run(support.PYTHON, __file__, env=_double.environment())
    sys.exit()

import memstow

double = ctypes.CDLL(None)
double.memstow_double_ask.restype = ctypes.c_uint64
double.memstow_double_answer.restype = ctypes.c_int64
double.memstow_double_answer.argtypes = [ctypes.c_uint64]


def open_scopes():
    saved = memstow._scopes_now()
    return list(saved.owners[:saved.count])


def raises(errno_name, call, *arguments):
    try:
        call(*arguments)
    except memstow.Error as error:
        assert errno.errorcode[error.errno] == errno_name, error
        return error
    raise AssertionError(f"{call} did not fail")


assert memstow.active() and memstow.version() == (1, 11)
first, second = memstow.owner("a", keys=(1, 2)), memstow.owner("b", keys=(1, 3), policy="stow", priority=4)
assert memstow.owner("other", keys=(1, 2)).id == first.id != second.id
node = memstow.owner("n", kind="node")
assert second.figures() == memstow.Figures(kind="model", policy="stow", priority=4)
assert memstow.owner("big key", keys=(2**64 - 1, -1)).id
for bad in (lambda: memstow.owner("x", kind="thing"), lambda: first.set_policy("burn"),
            lambda: memstow.decide("why not")):
    try:
        bad()
        raise AssertionError("a wrong word was taken")
    except ValueError:
        pass

# scopes
with first.scope(), node.scope(), second.scope():
    assert open_scopes() == [first.id, node.id, second.id]
    error = raises("EPERM", first.scope().__exit__, None, None, None)
    assert "innermost" in str(error), error
assert open_scopes() == []


@memstow.scope(first)
def decorated():
    return open_scopes()


assert decorated() == [first.id]


async def worker(owner, other):
    seen = [open_scopes()]
    with memstow.scope(other):
        await asyncio.sleep(0)
        seen.append(open_scopes())
        await asyncio.sleep(0.01)
        seen.append(open_scopes())
    seen.append(open_scopes())
    return seen == [[owner.id], [owner.id, other.id], [owner.id, other.id], [owner.id]] or seen


async def interleaved():
    tasks = [asyncio.create_task(memstow.follow(worker(a, b), a)) for a, b in ((first, second), (second, first)) * 3]
    for _ in range(5):
        assert open_scopes() == []
        await asyncio.sleep(0.003)
    return await asyncio.gather(*tasks)


assert all(found is True for found in asyncio.run(interleaved()))


async def by_factory():
    memstow.follow_tasks()
    memstow.follow_tasks() # twice is once
    with first.scope():
        task = asyncio.create_task(worker(first, second))
    repr(task)
    assert open_scopes() == []
    assert await task is True
    async with asyncio.timeout(1):
        await asyncio.gather(*(asyncio.to_thread(len, "abc") for _ in range(3)))

    async def fails():
        raise KeyError("as expected")
    try:
        await asyncio.create_task(fails())
        raise AssertionError("an exception was lost")
    except KeyError:
        pass
    task = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
        raise AssertionError("a cancellation was lost")
    except asyncio.CancelledError:
        pass


asyncio.run(by_factory())
assert open_scopes() == []
with first.scope():
    carried = memstow.carry(open_scopes)
results = []
for _ in range(2):
    thread = threading.Thread(target=lambda: results.extend((carried(), open_scopes())))
    thread.start(), thread.join()
assert results == [[first.id], []] * 2, results

# memory
buffer = bytearray(1000)
assert memstow.assign(first, [buffer, {"x": memoryview(bytearray(24))}, (4096, 100)]) == 1124
assert first.figures().live_bytes == 1124 and memstow.release_range(buffer) == 1000
try:
    memstow.assign(first, object())
    raise AssertionError("an object without memory was taken")
except TypeError:
    pass
temporary = memstow.owner("loading")
temporary.assign(bytearray(50))
first.adopt(temporary)
assert first.figures().live_bytes == 1174 and temporary.figures().adopted_by == first.id
raises("ENOENT", memstow.figures, 999)

# runs
with memstow.run("one") as run:
    raises("EBUSY", memstow.run("two").begin)
assert run.outcome == "ok"
for raised, outcome in ((KeyError(), "failed"), (MemoryError(), "out-of-memory"), (KeyboardInterrupt(), "cancelled")):
    try:
        with memstow.run("one") as run:
            raise raised
    except BaseException as error:
        assert error is raised and run.outcome == outcome
raises("ENOENT", run.end)

# moves, triggers, the trace
second.assign(bytearray(70))
assert memstow.Share(second.id, 0, 0, 70, 0, 0) in memstow.shares()
many = [memstow.owner(f"many {i}") for i in range(300)] # more than the first buffer holds
for one in many:
    one.assign(bytearray(9))
assert {one.id for one in many} <= {share.model for share in memstow.shares()}
for one in many:
    one.retire()
discards = ctypes.CDLL(None).memstow_double_discard
second.set_idle(True)
for discard in (True, False):
    second.set_discard(discard)
    assert discards(second.id) == discard
raises("ENOENT", lambda: memstow.Owner(second.id + 1000, "model", "none", "").set_discard(True))
assert second.stow() == 70 and second.figures().stowed_bytes == 70 and second.restore() == 70 and second.release() == 0
decided = memstow.decide("run_ended", "text")
raises("EBUSY", memstow.decide)
assert {d.owner: (d.policy, d.action, d.why, d.live_bytes)
        for d in decided}[second.id] == ("stow", "stow", "policy", 70)
assert memstow.finish() == 70 and memstow.trigger() == 0
for number in range(3000):
    memstow.trace({"line": "TEST", "number": number, "text": "ä" * 10})
lines, following = memstow.decisions()
collected = sum(line.get("kind") == "COLLECTED" for line in lines)
assert collected >= 1 # the runs above left notes of garbage collections, which memstow leaks reads
assert [line["number"] for line in lines if "number" in line] == list(range(3000))
assert memstow.decisions(following) == ([], following) and len(memstow.decisions(2991)[0]) == 10 + collected
raises("E2BIG", memstow.trace, {"text": "x" * 4000})

# requests, snapshots
assert memstow.next_request(0.01) is None
ticket = double.memstow_double_ask(2, second.id, "text from outside".encode())
request = memstow.next_request(1)
assert request == memstow.Request("stow", ticket, second.id, "text from outside")
ticket = double.memstow_double_ask_trigger(3, ctypes.c_uint64(5 << 32))
assert memstow.next_request(1) == memstow.Request("trigger", ticket, 0, "", "pressure", 5 << 32)
memstow.answer(request, 7, "done")
waits, request_next = [], memstow._library.request_next
memstow._library.request_next = lambda _request, milliseconds: waits.append(milliseconds) or 0
for seconds in (-1, 0, 0.25, 50 * 86400, float("inf")):
    memstow.next_request(seconds)
memstow._library.request_next = request_next
assert waits == [0, 0, 250, 2**32 - 1, 2**32 - 1], waits
assert memstow.next_request(-1) is None
assert double.memstow_double_answer(request.ticket) == 7
memstow.snapshot("one.mst")
assert os.path.exists("one.mst")
raises("EEXIST", memstow.snapshot, "one.mst")

# the button
assert memstow.full_cleanup("nobody listens") is False
asked = []
memstow.on_full_cleanup(asked.append)
assert memstow.full_cleanup("test") is True and asked == ["test"]
