"""The canonical bytes of states, one by one and side by side."""
