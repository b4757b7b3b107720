"""Encoding, searching and reranking on several machines, over Ray."""
