"""Answers as people and Prometheus see them: one view model (`cells`), and a module a surface."""
