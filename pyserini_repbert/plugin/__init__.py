"""This package inside Pyserini: its encoders and indexes in Pyserini's tables, and behind Pyserini's server."""
