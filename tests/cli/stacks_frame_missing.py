"""A call stack may name a frame that the file does not have. In this case there is no message, and no foreign memory is
read."""
from _ledger import Ledger
from support import memstow, report

made = Ledger()
made.count(made.site(stack=made.node([made.frame(0x1000), 0x10000])), alloc=(5000, 5))
made.save("x.mst")
assert "(no module)+0x0" in memstow("report", "x.mst").stdout
for view in ("--by=thread", "--folded", "--match=x", "--churn"):
    memstow("report", view, "x.mst")
stack = report("x.mst")["sites"][0]["stack"]
assert [(frame["function"], frame["file"], frame["line"]) for frame in stack] == [(None, None, None)], stack
memstow("diff", "x.mst", "x.mst")
memstow("leaks", "x.mst", status=None)
