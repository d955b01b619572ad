"""The public names: those of the modules that reference.rst lists."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).with_name("reference.rst")
NAMESPACES = re.findall(r"^   ([a-z][a-z_.]*)$", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def public(namespace: str) -> dict[str, Any]:
    """The public objects of a module by name; modules are left out."""
    module = import_module(namespace)
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == namespace]
    names = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    return {name: value for name in names if not inspect.ismodule(value := getattr(module, name))}
