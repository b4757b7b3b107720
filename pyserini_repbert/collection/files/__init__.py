"""A person's files and folders: each file is read by its own kind, as documents."""
