"""The files that users bring: runs, topics, judgments and corpora, each read, checked and
written in one place.
"""
