"""What people judge in a collection, and what is learned, watched and tried by these judgments."""
