"""A report uses the full width of a terminal with more than 80 columns. A name that is cut keeps its last part, and has
one ellipsis."""
from _ledger import MIB, Ledger
from _terminal import need, shown
from support import MEMSTOW, memstow

need()

LONG = "load_state_dict_with_a_name_that_is_longer_than_any_line_of_80_columns"
FOLDER = "/opt/a folder with blanks in its name, which is also a long one/lib/python3"
ledger = Ledger()
module = ledger.module(FOLDER + "/libexample.so.1")
ledger.count(ledger.site(module, stack=ledger.node([ledger.python(LONG, "/opt/somewhere/modules.py", 2190)])),
             alloc=(MIB, 1))
ledger.save("x.mst")


def on_terminal(columns, *words):
    return shown(columns, MEMSTOW, *words).replace("\r", "").split("\n")


for columns, cut in ((200, False), (81, True), (80, True), (40, True), (0, True)):
    for words in (("report", "x.mst"), ("report", "x.mst", "--by=module"), ("diff", "x.mst", "x.mst"), ("ps",)):
        lines = on_terminal(columns, *words)
        assert max(map(len, lines)) <= max(columns, 80), (columns, words, lines)
    sites = "\n".join(on_terminal(columns, "report", "x.mst"))
    assert (f"py {LONG}  modules.py:2190\n" in sites) != cut and " modules.py:2190\n" in sites, sites
    modules = "\n".join(on_terminal(columns, "report", "x.mst", "--by=module"))
    assert (f"  {FOLDER}/libexample.so.1 "
            in modules) != cut and ("  …/lib/python3/libexample.so.1 " in modules) == cut, modules
assert max(map(len, memstow("report", "x.mst").stdout.split("\n"))) <= 80
