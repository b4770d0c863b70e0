"""Where a process grows is named also when it shrinks on the whole, and it is not said to grow then."""
from _ends import faults, watch

text, _ = watch(faults(), "shrink", "leak", grace="3s", options=("--end",))
assert ("its live memory does not grow on the whole, "
        "but:\n") in text and "leak_some" in text and "grows by -" not in text, text
