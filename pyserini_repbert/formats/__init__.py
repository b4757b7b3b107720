"""The files that users bring: runs, topics and judgments, corpora; each read, checked and written in one place."""
