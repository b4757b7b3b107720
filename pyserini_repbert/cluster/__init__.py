"""Work for several machines, over Ray."""
