"""Optional libraries, imported when they are first needed."""

import importlib
from typing import Any


def require(module: str, purpose: str, extra: str = "data") -> Any:
    """Import ``module``, one of the optional libraries, and return it.

    Raises:
        ImportError: it is not installed; the message names ``purpose`` and the ``extra`` to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the library is installed, but one of its dependencies is not: the message names it
        message = f"{purpose} needs the package {package!r}, from  pip install 'minigrad-transformer[{extra}]'"
        raise ImportError(message, name=package) from None
