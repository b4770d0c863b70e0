# timeout: 400
"""A report or snapshot from outside is exact, or has sites that are marked as inexact, while call stacks make room for
each other: no block is seen twice, missed, or shown at another stack because its counts were just being moved. The
program says all the time in a file what it has done; the test reads this before and after each reading. Twelve
readings; outside_reader_folding_long has forty."""
from _folding import read

read(12)
