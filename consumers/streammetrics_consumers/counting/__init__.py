"""From events to commits: deltas, joins, and housekeeping of the ledger. No processes, no HTTP."""
