"""Training of every system from one recipe, on Hugging Face's Trainer; see `python -m pyserini_repbert.train`."""
