"""A process that shrinks on the whole is not shown as growing, but places in it that grow are named."""
from _ends import faults, watch

text, _ = watch(faults(), "shrink", "leak", grace="3s", options=("--end",))
assert ("its live memory does not grow on the whole, "
        "but:\n") in text and "leak_some" in text and "grows by -" not in text, text
