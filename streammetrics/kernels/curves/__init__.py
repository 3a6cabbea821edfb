"""Areas under curves, their bounds, and the points of curves."""
