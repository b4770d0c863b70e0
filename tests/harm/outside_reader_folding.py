# timeout: 400
"""Another process reads the ledger while call stacks make room for each other. Its report or snapshot is exact, or
marks the inexact sites: no block is seen twice, missed, or shown at another stack because its counts were just being
moved. The program writes all the time to a file what it has done, and the test reads this file before and after each
reading of the ledger. There are twelve readings; outside_reader_folding_long has forty."""
from _folding import read

read(12)
