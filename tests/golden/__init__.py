"""What the house puts out, kept as it was, so that a change inside of it is seen to change nothing."""
