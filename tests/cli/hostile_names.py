"""Names from a file can neither steer a terminal nor break JSON."""
import json
from _ledger import Ledger
from support import memstow

ledger = Ledger(name="\x1b[2Jprog")
ledger.fact(2, "run \x1b]0;title\x07 \x9b31m \udce0\udc80\udc9b31m \udced\udca0\udc80 \udcff\udcfe\n\"quoted\\")
ledger.count(ledger.site(ledger.module("/lib/\x1b[31mred\n.so")), alloc=(64, 1))
ledger.save("x.mst")
text = memstow("report", "x.mst").stdout
assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text), repr(text)
assert "/lib/?[31mred?.so" in text
assert "\ufffd" not in text and " ???31m ??? ??" in text, text # an overlong escape character, half of a surrogate pair
assert "\x1b" not in memstow("diff", "x.mst", "x.mst").stdout
stack = ledger.node([ledger.python("\x1b[2Ja;b\x9b31m\udcff é", "/a\x9bb.py", 3)])
ledger.count(ledger.site(stack=stack, tag=ledger.tag(ledger.owner(1, "unet\x9b31m"))), alloc=(4096, 1))
ledger.save("stacks.mst")
for folded in (memstow("report", "--folded", "--by=model", "stacks.mst"),
               memstow("diff", "--folded", "x.mst", "stacks.mst")):
    assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in folded.stdout), repr(folded.stdout)
    assert "py:?[2Ja:b??31m? é (a??b.py:3) " in folded.stdout, folded.stdout
document = json.loads(memstow("report", "x.mst", "--json").stdout)
assert document["process"]["name"] == "\x1b[2Jprog" and "\ufffd" in document["process"]["command"]
assert "\x1b" not in memstow("report", "\x1b[31m", status=3).stderr
