#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 3000
"""memstow check --comfy runs ten times without a baseline, with a workflow that does not leak. No run fails, and at
least eight pass without a warning."""
from _check import compare_with_itself

found = []
for repetition in range(10):
    document, growth = compare_with_itself() # any exit status but 0 is an error
    found.append((document["result"], growth))
print(found)
assert sum(result == "pass" for result, _ in found) >= 8, found
