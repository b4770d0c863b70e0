"""The text of a report shows call stacks in two ways: as a list of sites with their innermost frames, and as a tree
with its hottest path first. Python frames are marked."""
from _ledger import MIB, Ledger
from support import memstow

ledger = Ledger(total_peak=9 * MIB, picture=(9 * MIB, 9 * MIB, 2 * 10**9))
library, program = ledger.module("[library]"), ledger.module("[program]")
native = {name: ledger.frame(0x1000 * (i + 1), program) for i, name in enumerate("start main eval call alloc".split())}
operator = ledger.frame(0x9000, library)
train, step, load = (ledger.python("<module>", "/opt/train.py", 40), ledger.python("step", "/opt/train.py", 12),
                     ledger.python("load_state_dict_with_a_name_longer_than_the_line", "/opt/somewhere/modules.py",
                                   2190))
importing = ledger.python("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241)
outer = ledger.node([native["start"], native["main"], train])
stepped = ledger.node([step, native["eval"], native["call"]], outer)
loaded = ledger.node([load, importing] + [native["eval"]] * 12, outer)
model = ledger.tag(model=ledger.owner(1, "unet"), node=ledger.owner(2, "Load Model"))
ledger.count(ledger.site(program, stack=ledger.node([native["alloc"], operator], stepped), peak=MIB),
             alloc=(5 * MIB, 50), free=(4 * MIB, 40))
ledger.count(ledger.site(program, model, stack=ledger.node([native["alloc"]], loaded), peak=6 * MIB),
             alloc=(3 * MIB, 3))
ledger.count(ledger.site(program, stack=ledger.node([operator], outer)), alloc=(10, 1))
ledger.save("x.mst")


def sections(*options):
    """The text between the totals and the end."""
    text = memstow("report", "x.mst", *options).stdout
    assert all(len(line) <= 80 for line in text.split("\n")), text
    return text[text.index("\nBy "):text.index("\nResident memory")]


assert sections() == """
By site
        live      blocks  call stack, innermost first
     3.0 MiB           3  model unet, node Load Model
                          py load_state_…e_longer_than_the_line  modules.py:2190
                          py <module>  train.py:40
                             … 2 more, 14 inner frames
     1.0 MiB          10  py step  train.py:12
                          py <module>  train.py:40
                             … 2 more, 4 inner frames
        10 B           1  py <module>  train.py:40
                             … 2 more, 1 inner frame

Call tree (live, with all that is below)
     4.0 MiB 100.0 %     [program]+0x1000
                         [program]+0x2000
                      py <module>  train.py:40
     3.0 MiB  75.0 %    py load_state_…ame_longer_than_the_line  modules.py:2190
                           … 14 inner frames
     1.0 MiB  25.0 %    py step  train.py:12
                           … 4 inner frames
        10 B   0.0 %       … 1 more

By model
                                                 live      blocks      at peak
  unet                                        3.0 MiB           3      6.0 MiB
  untagged                                    1.0 MiB          11      1.0 MiB
""", sections()
assert sections("--by=module").startswith("\nBy module")
assert "Call tree" not in sections("--by=model")

# --top=1 shows one row. --churn shows another figure. --match shows only the stacks that match.
top = sections("--by=site", "--top=1", "--churn")
assert top.startswith("""
By site
   allocated      blocks  call stack, innermost first
     5.0 MiB          50  py step  train.py:12
"""), top
assert "  … and 2 more (--top=N shows N)\n" in top, top
assert "     6.0 MiB           1  model unet" in sections("--by=site", "--peak"), sections("--by=site", "--peak")
for text, expected in (("step", ["1.0 MiB"]), ("modules.py", ["3.0 MiB"]), ("[library]", ["1.0 MiB", "10 B"])):
    rows = sections("--by=site", f"--match={text}").split("\nCall tree")[0].split("\n")[3:]
    assert [row[2:12].strip() for row in rows if row[:13].strip()] == expected, (text, rows)
assert sections("--by=module", "--match=step").split("\n")[3].split() == ["[program]", "1.0", "MiB", "10", "1.0", "MiB"]
assert sections("--by=module", "--match=step").startswith('\nBy module, of call stacks with "step"\n')


def says(*options):
    """Whether the report explains the column "at peak". It should explain the column only if it shows the column."""
    text = memstow("report", "x.mst", *options).stdout
    assert all(len(line) <= 80 for line in text.split("\n")), text
    return "\nThe column" in text


assert says() and says("--by=model") and says("--by=site", "--peak")
assert not says("--by=site") and not says("--churn") and not says("--by=thread", "--peak")

# The name of the column says which moment it shows.
ledger.header["total_peak"] = 200 * MIB
ledger.header["picture"] = (100 * MIB, 100 * MIB, 2 * 10**9)
ledger.save("x.mst")
assert sections("--by=site", "--peak").startswith("""
By site
  at 100.0 MiB    blocks  call stack, innermost first
     6.0 MiB           1  model unet, node Load Model
"""), sections("--by=site", "--peak")
assert "\nCall tree (at 100.0 MiB, with" in sections("--by=site", "--peak")
ledger.header["total_peak"] = 4 * MIB
ledger.save("x.mst")
top = sections("--by=site", "--peak")
assert "   at peak      blocks" in top and "     3.0 MiB           3  model unet" in top, top
