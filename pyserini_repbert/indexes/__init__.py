"""Indexes as objects: a folder for each kind of index, which registers itself.

`kind_of` says what kind of index a folder or a name is. `IndexKind.open` opens it, as an `Index`.
"""
