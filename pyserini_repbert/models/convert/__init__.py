"""Converting the original authors' checkpoints into checkpoint folders of this package."""
