"""pandas, as its methods are by default."""

import pandas as pd

DISTRIBUTION, ENVIRONMENT = "pandas", "atlas"
CALLS = {
    "median": "pd.Series(numbers).median()",
    "variance": "pd.Series(numbers).var()",
    "skewness": "pd.Series(numbers).skew()",
}
