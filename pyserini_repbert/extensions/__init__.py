"""Features that can be removed, each in a folder whose `__init__` defines `EXTENSION`."""
