"""Models that died in ComfyUI. After each run there is a limited time for the search for holders of their remaining
memory, however many models there are; in the end every model gets its turn. The most likely holder is named first. If
the time is over before a search comes to a name, the object that the search has reached is noted as the holder only if
no other search follows soon. Models that live on, although they were to be freed, take turns, too. Clock and answers
are invented."""
import importlib, json, logging, sys, types

import support

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow # noqa: E402

pack = sys.modules["pack"] = types.ModuleType("pack")
pack.__path__, pack.memstow, pack.log = [str(support.ROOT / "tools/comfyui")], memstow, logging.getLogger("memstow")
leftovers = importlib.import_module("pack.leftovers")

MODELS, SECONDS = 20, 0.4
now, asked, said, live = 0.0, [], [], dict.fromkeys(range(MODELS), 1 << 20)


def find(tensors, ignored, deadline, all_of_them):
    global now
    asked.extend(tensors)
    now += SECONDS
    return [[holder(tensor, "a library", 2), holder(tensor, "pack", 0)] for tensor in tensors], False


def holder(tensor, pack, rank):
    return referrers.Holder(f"{pack} holds {tensor}", pack, f"{pack}.kept", rank, 3, True)


def look():
    """The models that were asked about."""
    del asked[:]
    models.look()
    return list(asked)


referrers = memstow.referrers()
referrers.time = types.SimpleNamespace(thread_time=lambda: now)
referrers.find = find
leftovers.tensors_in = lambda due: [(leftover, [leftover.owner.id]) for leftover in due]
leftovers.report = types.SimpleNamespace(
    figures_of=lambda owner: types.SimpleNamespace(live_bytes=live[owner.id], allocated_bytes=1 << 20))

models = leftovers.Leftovers(lambda kind,
                             **values: said.append((kind, values["owner"], values["pack"], values["holders"])))
for number in range(MODELS):
    models.add(types.SimpleNamespace(id=number), frozenset({(number, 1)}))
models.add(types.SimpleNamespace(id=99), frozenset())

first = look()
assert first == [0, 1, 2] and now <= referrers.SECONDS + SECONDS, (first, now) # the third began in time
assert said == [("HELD", number, "pack", [f"pack holds {number}", f"a library holds {number}"])
                for number in first], said
assert look() == [0, 1, 2], "each is asked after two runs"
live[3] = 1000
assert [look() for _ in range(6)] == [[4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18],
                                      [19]], "3 is little by now"
assert [look() for _ in range(55)] == [[]] * 55 and len(models.list) == MODELS - 1, len(models.list)
assert look() == [0, 1, 2], "and again, after 64"

# ---- the time is over before a search comes to a name

names = [("an object of type builtins.list", 3, False), ("pack.kept", 0, True)]


def find_late(tensors, ignored, deadline, all_of_them):
    place, rank, is_whole = names[0]
    return [[referrers.Holder(f"{place}[0]", "pack", place, rank, 3, is_whole)] for tensor in tensors], True


def after_two_runs(number):
    """What the trace says of a model after each of two runs."""
    del said[:]
    models.add(types.SimpleNamespace(id=number, name="unet", origin="unet.st"), frozenset({(number, 1)}))
    live[number] = 1 << 20
    models.look()
    assert models.listed()[0]["holders"] == [f"{names[0][0]}[0]"], "the report has what is known"
    after_one = [holders for _, _, _, holders in said]
    names.reverse()
    models.look()
    assert models.listed()[0]["holders"] == ["pack.kept[0]"]
    models.list.clear()
    return after_one, [holders for _, _, _, holders in said]


referrers.find = find_late
models.list.clear()
assert after_two_runs(100) == ([], [["pack.kept[0]"]]), said
assert after_two_runs(101) == ([["pack.kept[0]"]], [["pack.kept[0]"]]), said
names = [names[0]] * 2
del said[:]
models.add(types.SimpleNamespace(id=102), frozenset({(102, 1)}))
live[102] = 1 << 20
models.look(), models.look()
assert [holders for _, _, _, holders in said] == [["an object of type builtins.list[0]"]], "better than nothing"

# ---- the line of the trace names each place that is as likely to be at fault as the first place; its length is limited


def held(*holders):
    return referrers.held([referrers.Holder(f"{place}[0]", "pack", place, rank, 3, is_whole)
                           for place, rank, is_whole in holders])


assert held(("pack.kept", 0, True)) == {"pack": "pack", "place": "pack.kept", "holders": ["pack.kept[0]"]}
line = held(("pack.kept", 0, True), ("pack.kept", 0, True), ("pack.backups", 0, True), ("an object", 0, False),
            ("library.cache", 2, True))
assert line["place"] == "pack.kept" and line["other_places"] == [{"pack": "pack", "place": "pack.backups"}], line
long = held(*((chr(0x4e00 + number) * 200, 0, True) for number in range(8)))
assert len(json.dumps(long)) < 4000, len(json.dumps(long))

# ---- models that live on although they were to be freed: a search that is always cut short does not take the turn of
# other models

pack_held = importlib.import_module("pack.held")
whole = {1, 2, 3}


def find_in_time(targets, ignored, deadline):
    global now
    asked.extend(targets)
    is_cut = targets[0] not in whole
    now += 2 * referrers.SECONDS if is_cut else SECONDS
    place, rank = ("an object", 3) if is_cut else ("pack.kept", 0)
    return [[referrers.Holder(f"{place}[0]", "pack", place, rank, 3, not is_cut)] for _ in targets], is_cut


def looked():
    """The models that were searched after a run, and what is known of each."""
    del asked[:]
    places = living.look(identities)
    return list(asked), places


referrers.find = find_in_time
living = pack_held.Held(types.SimpleNamespace(trace=lambda kind, **values: None))
identities = [types.SimpleNamespace(owner=types.SimpleNamespace(id=number), patchers=[number], ids=set)
              for number in range(1, 6)]
searched = []
for _ in range(4):
    now_searched, known_places = looked()
    searched.append(now_searched)
assert searched == [[5], [4], [3, 2, 1], [5]], searched
assert known_places == {1: ["pack.kept[0]"], 2: ["pack.kept[0]"], 3: ["pack.kept[0]"], 4: ["an object[0]"],
                        5: ["an object[0]"]}, known_places
whole.clear()
for _ in range(70):
    _, known_places = looked()
assert all(known_places[number] == ["pack.kept[0]"] for number in (1, 2, 3)), "a search cut short replaces no name"
