"""The HTTP face of a store: an ASGI application, what guards it, and the thread that runs it.

Nothing is imported here, so that a command that serves nothing loads no HTTP server.
"""


class ServeError(Exception):
    """The address cannot be had."""
