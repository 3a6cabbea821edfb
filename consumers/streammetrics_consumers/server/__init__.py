"""The HTTP interface of a store: an ASGI application, its middleware, and the thread that runs it.

Nothing is imported here, so that a command that serves nothing loads no HTTP server.
"""


class ServeError(Exception):
    """The server cannot listen on this address."""
