"""Sliding windows over a ranking, from its end to its top (RankGPT section 3.2)."""

# Of RankGPT's experiments (section 4.2).
DEFAULT_WINDOW = 20
DEFAULT_STEP = 10


def sliding_windows(n: int, window: int, step: int) -> list[range]:
    """The rows of each window, in the order in which they are ranked: the last rows first.

    The last window holds the first row; one candidate needs none.

    Parameters
    ----------
    n : candidates
    window : candidates that a model reads at a time
    step : by how many the next window is nearer to the top; at most `window`
    """
    if n < 2:
        return []
    windows = []
    end = n
    while True:
        start = max(end - window, 0)
        # One candidate has no order: the second one is read again.
        windows.append(range(start, max(end, 2)))
        if start == 0:
            return windows
        end -= step
