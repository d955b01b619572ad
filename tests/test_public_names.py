"""Every public name that an earlier version offered is still there, with the same parameters."""

import json

from tests.public_names import RECORD, describe


def test_every_public_name_is_there_with_its_signature():
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    found = {(module, path): describe(path, module) for module, paths in recorded.items() for path in paths}
    different = [f"{module}: {path}: was {recorded[module][path]}, is {now}"
                 for (module, path), now in found.items() if now != recorded[module][path]]
    assert not different, "\n".join(["an intended change belongs in CHANGELOG.md; then python -m tests.public_names",
                                     *different])
