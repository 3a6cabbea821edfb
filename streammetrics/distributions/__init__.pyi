from streammetrics.distributions.exact_quantiles import ExactQuantiles as ExactQuantiles
from streammetrics.distributions.moments import Moments as Moments
from streammetrics.distributions.quantiles import Quantiles as Quantiles
from streammetrics.distributions.unit_mean import UnitMean as UnitMean
from streammetrics.distributions.unit_rate import UnitRate as UnitRate
from streammetrics.distributions.unit_sums import UnitSums as UnitSums
