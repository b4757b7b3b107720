"""The original authors' checkpoints made into folders of ours."""
