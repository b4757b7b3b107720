"""Learning from judgments without a new index: a map of query vectors, the weights of a fusion,
and a reranker's share of the score.
"""
