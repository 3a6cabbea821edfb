"""The HTTP face of a store: an ASGI application, what guards it, and the thread that runs it."""

from consumers.server.application import application
from consumers.server.health import Watched
from consumers.server.open_connections import Limits
from consumers.server.process import ServeError, announce, serving

__all__ = ["Limits", "ServeError", "Watched", "announce", "application", "serving"]
