"""--folded: one line a stack, outermost first, Python marked, nothing that would break a line."""
from _ledger import Ledger
from support import memstow

ledger = Ledger()
module = ledger.module("/opt/lib; odd.so")
python = ledger.python("run;it", "/opt/a b.py", 7)
stack = ledger.node([ledger.frame(0x10, module), python, ledger.frame(0x20, module)])
nameless = ledger.node([ledger.python("", "", 0)])
ledger.count(ledger.site(module, stack=stack), alloc=(500, 5), free=(200, 2))
ledger.count(ledger.site(module, stack=nameless), alloc=(20, 1))
ledger.count(ledger.site(module), alloc=(10, 1))
ledger.count(ledger.site(0), alloc=(5, 1))
ledger.count(ledger.site(module, stack=ledger.node([python])), alloc=(7, 1), free=(7, 1))
ledger.save("x.mst")

assert memstow("report", "x.mst", "--folded").stdout == """\
lib: odd.so+0x10;py:run:it (a b.py:7);lib: odd.so+0x20 300
py: 20
lib: odd.so 10
(call stack unknown) 5
"""
assert memstow("report", "x.mst", "--folded", "--churn", "--top=1").stdout.endswith(" 500\n")
assert memstow("report", "x.mst", "--folded", "--match=run;it").stdout.count("\n") == 1
