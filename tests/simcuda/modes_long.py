# long
# timeout: 3600
# As modes.py, with all cases that do not need settings of their own.
import _modes

_modes.run(_modes.all_cases())
