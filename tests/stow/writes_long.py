# long
# timeout: 7200
# alone
"""writes, ten million in each way."""
import writes

writes.main(10_000_000, 3500)
