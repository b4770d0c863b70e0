"""Without call sites, a report says that none were recorded, not that a module is unknown."""
from support import memstow, track

track("ls", "/", options=["--stacks=none"])
text = memstow("report", "out.mst").stdout
assert "\n  stacks     recorded without call sites (--stacks=none)\n" in text, text
assert "\n  (no call sites) " in text and "unknown" not in text, text
