"""What a typed name means: one resolver each for corpora, topics, judgments, indexes, sparse techniques, texts."""
