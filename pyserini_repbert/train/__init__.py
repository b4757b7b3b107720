"""Training of every system from a recipe, on Hugging Face's Trainer: `python -m
pyserini_repbert.train`.
"""
