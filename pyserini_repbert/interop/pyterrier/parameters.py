"""What PyTerrier may set of a transformer after it was made: `set_parameter`, and with it
`GridScan`, `GridSearch` and `KFoldGridSearch`.
"""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any, Self

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import UnknownNameError
from pyserini_repbert.interop.pyterrier.frames import pt


class _WithArguments(type(pt.Transformer)):  # type: ignore[misc]
    """The type of a transformer that knows with which arguments it was made."""

    def __call__(cls, *values: Any, **settings: Any) -> Any:
        transformer = super().__call__(*values, **settings)
        transformer._given = inspect.signature(cls).bind(*values, **settings)
        return transformer

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's, which `__call__` would hide."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters)


class Configured(pt.Transformer, metaclass=_WithArguments):  # type: ignore[misc]
    """A transformer that is made again when one of its parameters is set.

    Its parameters are its constructor's. Opened models and indexes depend on them, so setting an
    attribute also calls `set_parameter`.
    """

    _given: inspect.BoundArguments

    def __setattr__(self, name: str, value: Any) -> None:
        # A constructor sets attributes before the arguments are known.
        if '_given' in vars(self) and self._is_parameter(name):
            self.set_parameter(name, value)
        else:
            super().__setattr__(name, value)

    def _is_parameter(self, name: str) -> bool:
        """Whether an attribute is a parameter: of the constructor, or one of its `**settings`."""
        if name in self._given.signature.parameters:
            return True
        is_private = name.startswith('_')
        return self._name_of_others() is not None and not is_private and not hasattr(self, name)

    def get_parameter(self, name: str) -> Any:
        """The value of a constructor's parameter. Raises UnknownNameError for another name."""
        self._check_parameter(name)
        given = self._copied_arguments()
        given.apply_defaults()
        if name in given.arguments:
            return given.arguments[name]
        others = self._name_of_others()
        return given.arguments[others].get(name) if others is not None else None

    def set_parameter(self, name: str, value: Any) -> None:
        """Make the transformer again with another value of a constructor's parameter.

        Raises UnknownNameError for another name, and everything that the constructor raises. The
        transformer then does not change.
        """
        self._check_parameter(name)
        given = self._copied_arguments()
        others = self._name_of_others()
        if name in given.signature.parameters or others is None:
            given.arguments[name] = value
        else:
            given.arguments[others] = {**given.arguments.get(others, {}), name: value}
        changed = type(self)(*given.args, **given.kwargs)
        self.__dict__ = changed.__dict__

    def _copied_with(self, name: str, value: Any) -> Self:
        """A copy with another value of a constructor's parameter.

        Open models and indexes are shared.
        """
        copied = copy(self)
        copied._given = self._copied_arguments()
        copied._given.arguments[name] = value
        copied.__dict__[name] = value
        return copied

    def _copied_arguments(self) -> inspect.BoundArguments:
        return inspect.BoundArguments(self._given.signature, dict(self._given.arguments))

    def _name_of_others(self) -> str | None:
        """The parameter that takes all other names: `**settings`."""
        for parameter in self._given.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                return parameter.name
        return None

    def _check_parameter(self, name: str) -> None:
        names = list(self._given.signature.parameters)
        if name in names or self._name_of_others() is not None:
            return
        near = did_you_mean(name, names)
        raise UnknownNameError(
            f"{type(self).__name__} has no parameter '{name}'{near}: expected {', '.join(names)}"
        )
