# long
# timeout: 400
"""Forty readings of a program whose call stacks make room for each other: see outside_reader_folding."""
from _folding import read

read(40)
