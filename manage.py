#!/usr/bin/env python
"""Bandstand's command line for operators, from a checkout."""

from leaderboard.command import main

if __name__ == "__main__":
    main()
