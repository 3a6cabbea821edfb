"""From raw records to columns by role, one refusal for each bad event."""
