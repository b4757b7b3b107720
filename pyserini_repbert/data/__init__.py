"""The files that users bring, each read, checked and written in one module."""
