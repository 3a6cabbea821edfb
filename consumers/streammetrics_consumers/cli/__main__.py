"""`python -m streammetrics_consumers.cli`."""

import sys

from streammetrics_consumers.cli.main import main

sys.exit(main())
