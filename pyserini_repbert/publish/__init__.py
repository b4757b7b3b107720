"""Checkpoints as repositories for the Hugging Face hub: plain weights, a card, and files that other packages open."""
