"""What was counted, read from the ledger and shown."""
