"""The addresses below /v1."""
