"""From events to commits: deltas, joins, and what keeps the ledger tidy. No process and no HTTP."""
