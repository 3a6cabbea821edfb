"""Measures of ranked lists."""
