"""These systems under the interfaces of other packages."""
