"""One file a subject: parse, one call, answer."""
