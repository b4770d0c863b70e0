"""Losses are shown in words, and only if there are any. Notes of the library are shown."""
from _ledger import simple
from support import memstow, report

simple().save("none.mst")
assert "\nLost" not in memstow("report", "none.mst").stdout
ledger = simple(lost={0: 1234, 6: 1, 15: 5})
ledger.fact(4, "the program defines malloc itself")
ledger.save("x.mst")
text = memstow("report", "x.mst").stdout
assert text.endswith("""
Lost
  events counted without their call site, for want of memory: 1,234
  failures to create or grow the ledger file: 1
  losses of a newer kind: 5
"""), text
assert "  note       the program defines malloc itself\n" in text
long = "a note of many words " * 9
ledger.fact(4, long)
ledger.save("y.mst")
text = memstow("report", "y.mst").stdout
assert long.split() == text[text.index("a note of"):text.index("\n  where ")].split(), text
assert all(len(line) <= 80 for line in text.split("\n")), text
document = report("x.mst")
assert document["lost"]["sites"] == 1234 and len(document["lost"]["reasons"]) == 3
assert document["process"]["notes"] == ["the program defines malloc itself"]
