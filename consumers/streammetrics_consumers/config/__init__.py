"""The config: a TOML file, checked completely before anything starts."""
