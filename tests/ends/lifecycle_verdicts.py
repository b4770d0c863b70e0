"""lifecycle's verdicts by time and growth. A program that takes more than 10 s to close gets a warning, and with
--strict exit status 1. A Python thread that still runs five seconds after the close is a warning, too, unless it is a
daemon. Growth from the tenth second on is a warning, or a failure if it is above 5 MiB."""
from _verdicts import begin, end
from support import PYTHON, run

lives = {"slow": begin("slow", 12), "strict": begin("slow", 12, "--strict"), "thread": begin("thread", 7),
         "daemon": begin("daemon", 7), "grows": begin("grows=400000", 16),
         "leaks": begin("grows=1200000", 60, "--observe=18s")}
lives = {name: end(process) for name, process in lives.items()}
for name, expected in (("slow", 0), ("strict", 1)):
    status, verdict, reasons, life = lives[name]
    assert (status, verdict) == (expected, "warning") and 12 < life["gone_seconds"] < 20, lives[name]
    assert len(reasons) == 1 and reasons[0].startswith("took 1"), reasons
    assert reasons[0].endswith(" s to close, more than 10 s"), reasons

if run(PYTHON, "-c", "import sys; print(sys.version_info[:2])").stdout.strip() in ("(3, 11)", "(3, 12)"):
    status, verdict, reasons, life = lives["thread"]
    assert (status, verdict) == (0, "warning"), lives["thread"]
    assert reasons == ["1 Python thread is not a daemon: Python waits for it at exit"], reasons
status, verdict, reasons, life = lives["daemon"]
assert (status, verdict,
        reasons) == (0, "passed", []) and life["threads"] == 2 and life["gone_seconds"] > 6, lives["daemon"]

status, verdict, reasons, life = lives["grows"]
assert (status, verdict) == (0, "warning") and 1 << 20 < life["growth_bytes"] < 5 << 20, lives["grows"]
assert sum(reason.startswith("grew by ")
           and reason.endswith(", measured from 10 s after the close") for reason in reasons) == 1, reasons
status, verdict, reasons, life = lives["leaks"]
assert (status, verdict) == (1, "failed") and life["growth_bytes"] > 5 << 20, lives["leaks"]
assert "1 process left after 18.0 s" in reasons, lives["leaks"]
assert any(reason.startswith("grew by ")
           for reason in reasons) and life["final_bytes"] > life["close_bytes"] + (10 << 20), lives["leaks"]
assert life["peak_bytes"] >= life["final_bytes"] >= life["close_bytes"] + life["growth_bytes"], lives["leaks"]
