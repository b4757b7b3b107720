"""The ranking models, in PyTorch: tensors in, tensors out."""
