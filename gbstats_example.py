a = ProportionStatistic(n=10_000, sum=46)
b = ProportionStatistic(n=10_000, sum=69)
TwoSidedTTest(a, b, FrequentistConfig(difference_type="absolute")).compute_result()
# expected 0.0023, ci [0.00020, 0.00440], p_value 0.0315
