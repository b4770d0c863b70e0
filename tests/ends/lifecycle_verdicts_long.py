# long
"""A program that takes more than 30 s to close fails, although it is gone at the end."""
from _verdicts import begin, end

status, verdict, reasons, life = end(begin("slow", 33))
assert (status, verdict) == (1, "failed") and 33 < life["gone_seconds"] < 50, (status, life)
assert len(reasons) == 1 and reasons[0].endswith(" s to close, more than 30 s"), reasons
