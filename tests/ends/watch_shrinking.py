"""If the memory of a process shrinks on the whole, watch does not say that the process grows. But watch names the
places in the program whose memory grows."""
from _ends import faults, watch

text, _ = watch(faults(), "shrink", "leak", grace="3s", options=("--end",))
assert ("its live memory does not grow on the whole, "
        "but:\n") in text and "leak_some" in text and "grows by -" not in text, text
