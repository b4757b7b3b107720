"""The network in NumPy computes what the network in PyTorch computes."""
