"""Resolvers of names that users type, one each for corpora, topics, judgments, indexes, sparse
techniques, texts.
"""
