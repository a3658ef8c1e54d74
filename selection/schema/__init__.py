"""The forms of what is stored and published, each field said once."""
