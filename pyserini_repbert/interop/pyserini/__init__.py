"""This package inside Pyserini: encoders and indexes in Pyserini's tables, and searchers for Pyserini's server."""
