"""What the names that users type mean: corpora, topics, judgments, indexes, rankers, texts."""
