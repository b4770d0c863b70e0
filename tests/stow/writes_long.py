# long
# timeout: 7200
# alone
"""writes, with ten million writes by each method."""
import writes

writes.main(10_000_000, 3500)
