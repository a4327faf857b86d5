"""Divides the values of a parameter between the short tier and the long one."""
import pytest


def others_long(values, short=1):
    """The values for pytest.mark.parametrize: the first `short` ones belong to the short tier, the others to the long one."""
    return [pytest.param(*as_tuple(value), marks=pytest.mark.long) if index >= short else value for index, value in enumerate(values)]


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)
