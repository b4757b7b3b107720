"""A task for each system: instances to tensors, tensors to a loss."""
