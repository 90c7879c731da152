"""The error of a value that cannot be saved."""


class Unsavable(Exception):
    """The value cannot be saved and read back; says why."""
