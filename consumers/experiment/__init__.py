"""The experiment of a config: read out of the ledger, and looked at while it goes on."""
