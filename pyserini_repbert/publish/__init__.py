"""Checkpoints as repositories of the Hugging Face hub: plain weights, a card, and folders that other packages open."""
