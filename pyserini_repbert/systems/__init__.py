"""The papers' systems, and models that users bring: a folder for each, which registers itself."""
