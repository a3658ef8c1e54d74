"""What works off the jobs. Any number of schedulers may run: one leads, another takes over within seconds.

leadership  one connection outside Django's holds the advisory lock and listens; losing it ends leadership
clock       ticks every five seconds, and at once when something was delivered
lanes       two threads: each finds what is due, claims it, works it off, and looks again at the next tick
performing  one run: its progress, its sign of life, how it ended
children    a run of the long lane in a process of its own, which ends with its scheduler
"""
