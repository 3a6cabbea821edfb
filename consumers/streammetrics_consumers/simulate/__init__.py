"""A stream of an A/B test whose true difference is known."""
