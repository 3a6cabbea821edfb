"""A simulated stream of an A/B test with a known true difference."""
