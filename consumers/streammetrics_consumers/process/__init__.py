"""A counting process: starting, reconnecting, reporting its status, and stopping."""
