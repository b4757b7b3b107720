"""Our systems through other projects' own interfaces, one thin file each."""
