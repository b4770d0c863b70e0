# long
# needs: cc
# timeout: 3600
"""churn, for five minutes each way."""
import churn

churn.main(300, 100)
