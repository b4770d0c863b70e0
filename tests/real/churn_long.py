# long
# needs: cc
# timeout: 3600
"""The two checks of churn, for five minutes each."""
import churn

churn.main(300, 100)
