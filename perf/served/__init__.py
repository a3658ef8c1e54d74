"""The service with a view more, which does nothing: what a server gives at most."""
