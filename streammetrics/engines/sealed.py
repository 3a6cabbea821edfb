"""User-keyed states whose users are complete; `combine.sealed` has the whole of it."""

from streammetrics.combine.sealed import Sealed, Sealing, seal

__all__ = ["Sealed", "Sealing", "seal"]
