"""Reading results, the experiment and the status from the ledger."""
