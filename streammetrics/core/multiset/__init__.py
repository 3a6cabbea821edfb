"""The multiset of rows: the state of every exact metric that orders rows."""
