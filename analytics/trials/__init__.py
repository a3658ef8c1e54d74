"""What repeated trials tell: how consistent an agent is, what chance gains, what looks odd.

===========  ==============================================================================================
module       holds
===========  ==============================================================================================
``icc``      the intraclass correlation of an agent's trials, and how many trials it takes
``gaming``   what the best of K submissions gains by chance
``flags``    copies, identical agents, gains only, orders that missing outcomes forbid
===========  ==============================================================================================
"""
