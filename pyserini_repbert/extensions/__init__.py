"""Features that can be taken away, each in a folder whose `__init__` defines `EXTENSION`."""
