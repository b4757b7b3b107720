"""The HTML report of an evaluation: rankings side by side, gains and losses, what to look at."""
