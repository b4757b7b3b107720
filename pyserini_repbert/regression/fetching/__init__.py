"""What the conditions of regressions need, fetched: downloads, archives unpacked, checksums recorded."""
