"""Our systems behind the interfaces of other projects, a module or package for each project."""
