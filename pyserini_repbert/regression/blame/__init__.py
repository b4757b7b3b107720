"""Why a score moved: a condition run again with one factor changed at a time."""
