"""The log read again: `verify` compares it with the ledger, `retry` counts what was refused."""
