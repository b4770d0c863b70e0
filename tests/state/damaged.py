#!/usr/bin/env python3
# timeout: 600
"""The files of a prefix are damaged: the manifest and a value are changed at each byte, cut off, and made longer; two
values change places. A manifest whose checksum is right names an id twice, or has impossible generations. Each time
opening is refused with the same message, and nothing is removed. As soon as the bytes are back, so are the values."""
import _state

folder = _state.real_disk()
_state.python("""
    import random, struct

    def opened():
        return memstow_state.open("loop", persist_prefix="p", directory=folder)

    home = folder / "p.state"
    with opened() as store:
        store.begin(); store.put("a", "one"); store.put("b", b"two"); assert store.commit() == 1

    def listing():
        return {path.name: path.read_bytes() for path in home.iterdir()}

    good, said = listing(), set()
    assert sorted(good) == ["a.1.value", "b.1.value", "manifest"], sorted(good)

    def is_refused(what):
        try:
            store = opened()
        except memstow_state.StateError as error:
            assert error.errno == errno.EUCLEAN and not isinstance(error, memstow_state.StateBusy), (what, error)
            said.add(str(error))
        else:
            raise AssertionError(f"{what}: opened, with {store.ids()}")

    chance = random.Random(7)
    for name in ("manifest", "a.1.value"):
        whole = good[name]
        with open(home / name, "r+b", buffering=0) as file:
            for at in range(len(whole)):
                os.pwrite(file.fileno(), bytes([whole[at] ^ 1 << chance.randrange(8)]), at)
                is_refused(f"{name}, byte {at}")
                os.pwrite(file.fileno(), whole[at:at + 1], at)
            for length in reversed(range(0, len(whole), 1 if name == "manifest" else 16)):
                file.truncate(length)
                is_refused(f"{name}, {length} bytes")
            for more in (b"\\0", b"\\0" * 4096, whole):
                os.pwrite(file.fileno(), whole + more, 0)
                is_refused(f"{name}, {len(more)} more bytes")
                file.truncate(len(whole))
    os.rename(home / "a.1.value", home / "away")
    os.rename(home / "b.1.value", home / "a.1.value")
    os.rename(home / "away", home / "b.1.value")
    is_refused("two values in each other's places")
    for name, content in good.items():
        (home / name).write_bytes(content)

    HEADER, ENTRY, GENERATION, CHECKSUM, ENTRY_GENERATION = 32, 232, 16, 24, 208

    def summed(manifest):
        total, words = 0, list(struct.unpack(f"<{len(manifest) // 8}Q", manifest))
        for number, word in enumerate(words):
            if number != CHECKSUM // 8:
                total = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
                total ^= total >> 29
        words[CHECKSUM // 8] = total
        return struct.pack(f"<{len(words)}Q", *words)

    def with_number(form, at, number):
        changed = bytearray(good["manifest"])
        struct.pack_into(form, changed, at, number)
        return changed

    assert summed(good["manifest"]) == good["manifest"] and len(good["manifest"]) == HEADER + 2 * ENTRY
    for number in (0, 2**62, 2**63 - 1, 2**63, 2**64 - 1): # 0: the entries' generation is 1
        (home / "manifest").write_bytes(summed(with_number("<Q", GENERATION, number)))
        is_refused(f"generation {number}")
    (home / "manifest").write_bytes(summed(with_number("<Q", HEADER + ENTRY_GENERATION, 2)))
    is_refused("a value of a later generation")
    (home / "manifest").write_bytes(summed(with_number("<I", 12, 3) + good["manifest"][HEADER:HEADER + ENTRY]))
    is_refused("an id that is there twice")
    (home / "manifest").write_bytes(good["manifest"])
    assert listing().keys() - {"lock"} == good.keys(), "something was removed"
    assert len(said) == 1 and "damaged" in min(said) and "\\n" not in min(said), said
    with opened() as store:
        assert store.generation == 1 and store.get("a") == "one" and store.get("b") == b"two", store.info()
    opened().close()
    """, folder, timeout=580)
assert not list(folder.iterdir())
folder.rmdir()
