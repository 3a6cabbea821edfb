"""Engines of other people that feed the ledger: rows in their tasks, one transaction a batch."""
