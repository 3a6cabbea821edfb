"""How large and how tangled the house is, beside what it should be: `python -m tests.house`.

Every figure is counted from the source, or measured while the code runs, or read from what the last
run of CI printed; none is written down here, and none has a list of files or classes as its input.
The docstring of each gauge says how it counts. `tests/test_house.py` breaks each one on purpose,
and holds what is quickly counted: a figure that has reached its goal stays there, and no other
grows.

    python -m tests.house                    the table
    python -m tests.house --quick            only what is counted in seconds
    python -m tests.house --time check       also how long `make check` takes; may be repeated
    python -m tests.house --details          also what each figure consists of

| file | gauges |
|---|---|
| `views` | tables of views, hook methods, classes and names that are asked for |
| `structure` | records, chains of imports, names of classes, imports of a metric |
| `vocabulary` | names that say nothing, with the closed list |
| `calls` | functions that one call crosses; the cost of a shown value |
| `newcomer` | files that a newcomer changes, by doing what CONTRIBUTING says |
| `sizes` | lines and files |
| `steps` | ways of a row, and what a step of a worker crosses |
| `durations` | seconds of CI and of make, as CI noted them |
"""
