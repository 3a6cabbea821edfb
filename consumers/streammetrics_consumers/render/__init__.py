"""Rendering of answers, for people and Prometheus: one view model (`cells`), a module a surface."""
