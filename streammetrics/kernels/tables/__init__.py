"""Rows as cells of tables: score buckets, truth by prediction, bins of probabilities."""
