"""Without any descriptor left the ledger cannot grow: what does not fit is counted as lost, and blocks stay exact."""
import _bad_day, support

program = _bad_day.program()
_bad_day.same([program, "nofile"])
report = support.report()
assert report["lost"]["file"], report["lost"]
assert report["totals"]["host"]["live_bytes"] >= _bad_day.LARGE + _bad_day.PAGES
assert report["process"]["state"] == "exited"
