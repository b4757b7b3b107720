"""People's judgments in a collection, and what is learned from them."""
