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
document = json.loads(memstow("report", "x.mst", "--json").stdout)
assert document["process"]["name"] == "\x1b[2Jprog" and "\ufffd" in document["process"]["command"]
assert "\x1b" not in memstow("report", "\x1b[31m", status=3).stderr
