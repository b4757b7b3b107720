"""What people judge in a collection, and what is learned from it."""
