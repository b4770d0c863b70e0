"""The column "at peak" has the figures of a moment near the peak: those of a picture, or those of live memory if live
memory is nearer to the peak than the picture. A sentence says how far from the peak the moment was."""
from _ledger import MIB, Ledger
from support import memstow, report


def ledger(live, peak, picture, late=MIB // 2, **header):
    """Two modules have equal parts of the picture. All live memory belongs to the first module."""
    made = Ledger(total_peak=peak, host_peak=peak, picture=picture and (picture, picture - late, 2 * 10**9), **header)
    half = (picture - late + MIB // 2) // 2
    parts = (half - MIB // 2, half) if picture else (None, None)
    made.count(made.site(made.module("/opt/program"), peak=parts[0]), alloc=(peak, 40), free=(peak - live, 10))
    made.count(made.site(made.module("/lib/x.so"), peak=parts[1]), alloc=(MIB, 1), free=(MIB, 1))
    return made.save("x.mst")


def column(title):
    text = memstow("report", "x.mst").stdout
    assert all(len(line) <= 80 for line in text.split("\n")), text
    start = text.index("\nThe column")
    sentence, rows = text[start:text.index("\nBy ")].strip(), text[text.index("\nBy "):].split("\n")
    assert rows[2].endswith(title), text
    return sentence.replace("\n", " "), [line.split()[-2:] for line in rows[3:5] if line.startswith("  /")]


ledger(live=3 * MIB, peak=64 * MIB, picture=64 * MIB)
assert column("      at peak") == ('The column "at peak" shows the ledger at 63.5 MiB, on its way down from '
                                   'the peak, which was 1.0 s after the start and 512.0 KiB higher.',
                                   [["31.5", "MiB"], ["32.0", "MiB"]]), column("at peak")
found = report("x.mst")["peak"]
assert found == {"picture_bytes": 64 * MIB - MIB // 2, "picture_blocks": 2, "picture_of_bytes": 64 * MIB,
                 "distance_bytes": MIB // 2, "from": "picture", "seconds_after_start": 1.0}, found

# The peak ended when one large block was freed, so the picture was taken when much less was live than at the peak. The
# column is named after the bytes in the picture.
ledger(live=3 * MIB, peak=64 * MIB, picture=64 * MIB, late=34 * MIB)
assert column("  at 30.0 MiB") == ('The column "at 30.0 MiB" shows the ledger at 30.0 MiB, on its way down '
                                   'from the peak, which was 1.0 s after the start and 34.0 MiB higher.',
                                   [["14.8", "MiB"], ["15.2", "MiB"]]), column("MiB")

# If a program grows until its end, its live memory at the end is the peak, or close to the peak.
ledger(live=62 * MIB, peak=64 * MIB, picture=10 * MIB)
assert column("      at peak") == ('The column "at peak" shows what was live at the end: no picture of the ledger '
                                   'is nearer to the peak. The difference is 2.0 MiB.',
                                   [["62.0", "MiB"]]), column("at peak")
document = report("x.mst")
assert document["peak"] == {"picture_bytes": 62 * MIB, "picture_blocks": 30, "picture_of_bytes": 64 * MIB,
                            "distance_bytes": 2 * MIB, "from": "live", "seconds_after_start": 2.0}, document["peak"]
assert [site["peak_bytes"] for site in document["sites"]] == [62 * MIB]
assert {m["module"]: m["peak_bytes"] for m in document["modules"]} == {"/opt/program": 62 * MIB, "/lib/x.so": 0}

# The picture is of an earlier, lower peak, and live memory is far below the highest peak: the name of the column says
# which moment it shows.
ledger(live=3 * MIB, peak=64 * MIB, picture=10 * MIB)
assert column("   at 9.5 MiB") == ('The column "at 9.5 MiB" shows the ledger as it fell from a peak 1.0 s after the '
                                   'start. The highest peak came later and was 54.5 MiB higher: there is no picture of '
                                   'it.',
                                   [["4.5", "MiB"], ["5.0", "MiB"]]), column("MiB")
found = report("x.mst")["peak"]
assert (found["picture_of_bytes"], found["distance_bytes"]) == (10 * MIB, 64 * MIB - 10 * MIB + MIB // 2), found
assert "The column" not in memstow("report", "x.mst", "--by=thread").stdout

# A program that only grows has no picture: its live memory is the peak.
ledger(live=64 * MIB, peak=64 * MIB, picture=0)
assert column("      at peak") == ('The column "at peak" shows what was live at the end: that is the peak.',
                                   [["64.0", "MiB"]]), column("at peak")
done = memstow("report", "x.mst", "--peak")
assert (not done.stderr and "at 0 B" not in done.stdout
        and "     64.0 MiB          30     64.0 MiB\n" in done.stdout), done
document = report("x.mst", "--peak")
assert document["peak"]["from"] == "live" and document["peak"]["distance_bytes"] == 0, document["peak"]
assert [site["peak_bytes"] for site in document["sites"]] == [64 * MIB]
ledger(live=10 * MIB, peak=64 * MIB, picture=0)
assert column("  at 10.0 MiB") == ('The column "at 10.0 MiB" shows what was live at the end: no picture of the ledger '
                                   'is nearer to the peak. The difference is 54.0 MiB.',
                                   [["10.0", "MiB"]]), column("MiB")
ledger(live=0, peak=64 * MIB, picture=0)
done = memstow("report", "x.mst", "--peak")
assert done.stderr == ("memstow: x.mst: nothing is live, and no picture of its peak was taken: --peak shows "
                       "nothing\n"), done
assert report("x.mst")["peak"] is None

# The report points to --peak if most of the peak was freed before an orderly end. It does not do so if the memory
# leaked, or if the program was killed or was still growing.
HINT = "\n  next       memstow report --peak x.mst: most of the peak was freed before\n             the end\n"
for live, picture, state, said in ((3, 64, 2, True), (3, 64, 1, False), (3, 64, 3, False), (40, 64, 2, False),
                                   (64, 0, 2, False)):
    ledger(live * MIB, 64 * MIB, picture * MIB, state=state)
    assert (HINT in memstow("report", "x.mst").stdout) == said, (live, picture, state)
    assert HINT not in memstow("report", "x.mst", "--peak").stdout
