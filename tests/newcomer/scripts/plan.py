from streammetrics import plan_test

planned = plan_test(rate=0.05, lift=0.1, power=0.9, units_per_day=20_000)
print(planned)
once, daily = planned.one_look, planned.size
print(f"{once.units:,} users for one look, {daily.units:,} with a look a day")
