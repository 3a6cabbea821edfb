"""The config: a page of TOML, checked whole before anything starts."""
