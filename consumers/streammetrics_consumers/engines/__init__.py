"""External engines that write to the ledger: tasks count rows, one transaction per batch."""
