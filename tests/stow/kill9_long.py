# long
# timeout: 1800
"""kill9, at 100 random moments."""
import kill9

kill9.main(100)
