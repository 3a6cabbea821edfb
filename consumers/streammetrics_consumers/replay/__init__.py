"""The log read again: `verify` compares it with the ledger, `retry` counts refused events."""
