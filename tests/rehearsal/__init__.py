"""Stand-ins for everything that the regressions need and that is not here, served from
127.0.0.1.
"""
