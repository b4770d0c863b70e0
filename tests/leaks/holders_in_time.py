"""A search for holders may run out of time before it reaches a name. If a later search may have more time, this search
gives no answer. Otherwise the object that it has reached would be noted as the holder, and nobody would search again.
If no search may have more time, this object is the answer. The clock and the blocks are invented: each look at all
objects takes a second."""
import gc, pathlib, sys, types

import support

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow_blocks as blocks # noqa: E402
import memstow_looks as looks # noqa: E402
import memstow_referrers as referrers # noqa: E402

DEEP, STACK, PATH = 6, 7, "abc"
pathlib.Path("keeper.py").write_text(f"""
kept = [bytearray(40_000)]
for _ in range({DEEP}):
    kept = [kept]
""")
sys.path.insert(0, "")
import keeper # noqa: E402

now, real_referrers = 0.0, gc.get_referrers


def referrers_of(*things):
    global now
    now += 1
    return real_referrers(*things)


def ask(addresses, count, how, answer, size):
    """Answers in place of the ABI: the memory of the kept array is a block of the call stack STACK. At all other
    addresses there is no block."""
    inner = keeper.kept
    while type(inner) is list:
        inner = inner[0]
    known = set(blocks.words_of(inner))
    for number in range(count):
        block = (addresses[number], 40_000, 0, 0, 1, STACK) if addresses[number] in known else (0, ) * 6
        blocks.LAYOUT.pack_into(answer, number * size, *block)
    return count


referrers.time = blocks.time = types.SimpleNamespace(thread_time=lambda: now)
gc.get_referrers = referrers_of


def search(seconds, more_later):
    lines, missed = blocks.holders_of(blocks.parse([f"{PATH}={STACK:x}"]), 0, ask, lambda owner: owner, seconds,
                                      more_later)
    return [(line["blocks"], line.get("pack"), line.get("place")) for line in lines], missed


assert blocks.parse(["a=1,2", "b=3", "a=4"]) == [("a", (1, 2, 4)), ("b", (3, ))], "words with one path"
assert search(DEEP / 2, True) == ([], {PATH}), "the search did not reach a name"
assert search(4 * DEEP, True) == ([(1, "keeper", "keeper.kept")], set())
[(count, pack, place)], missed = search(DEEP / 2, False)
assert count == 1 and place.startswith("an object of type") and not missed, (place, missed)
gc.get_referrers = real_referrers

# ---- how much time a search gets

asked, is_cut = [], True


def holders_of(stacks, before, seconds, more_later):
    asked.append((seconds, more_later))
    return 0, is_cut


asking = looks.Looks(lambda *_: None, lambda *_: None, holders_of)


def look(word):
    _found, text = asking.look(types.SimpleNamespace(kind="holders", text=f"{word} 0 {PATH}={STACK:x}"))
    assert text.endswith("there was no time for all") == is_cut, text
    return asked.pop()


assert [look("offer") for _ in range(4)] == [(3, True), (6, True), (10, False), (10, False)]
is_cut = False
assert look("offer") == (10, False) and look("offer") == (3, True) and look("find") == (10, False)
