"""The operators' admin: what needs a decision, and a page for each thing that one can do about it."""
