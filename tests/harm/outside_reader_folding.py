# timeout: 400
"""Another process reads the ledger while call stacks make room for each other, and counts move from stack to stack. The
report or snapshot marks the sites that are not exact. If no site is marked, no block is missing, counted twice, or
shown at another stack. The program writes all the time to a file what it has done, and the test reads this file before
and after each reading of the ledger. There are twelve readings; outside_reader_folding_long has forty."""
from _folding import read

read(12)
