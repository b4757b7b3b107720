"""Commands and actions of commands that only a collection has."""
