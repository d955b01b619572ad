"""Which tests belong to which folder of the source. Edit this table when folders move."""

from pathlib import Path

# The tests of the longest matching prefix meet a mutant first; then any test, among those of all matching prefixes,
# that runs the mutated line. Of a line that hardly any test is seen to run (it runs on import, in another process or
# compiled), the tests of the longest prefix stand in. Paths that do not exist are passed over.
ENGINE = sorted(str(path) for path in Path("tests/minigrad").glob("test_engine_*.py"))
TESTS = {
    "minigrad": ["tests/minigrad"],
    "minigrad/engine": ENGINE,
    "minigrad/device": ["tests/minigrad/test_device.py"],
    "minigrad/ops": ["tests/minigrad/ops"],
    "minigrad/tensor": [*ENGINE, "tests/minigrad/ops"],
    "minigrad/functional": ["tests/minigrad/functional"],
    "minigrad/nn": ["tests/minigrad/nn"],
    "minigrad/optim": ["tests/minigrad/optim"],
    "minigrad/func": ["tests/minigrad/test_func.py", "tests/minigrad/test_recompute.py"],
    "minigrad/kernels": ["tests/minigrad/kernels"],
    "minigrad/kernels/host": ["tests/minigrad/kernels", "tests/minigrad/functional"],
    "minigrad/precision": ["tests/minigrad/test_half.py", "tests/minigrad/test_autocast.py", "tests/minigrad/optim"],
    "minigrad/inspect": ["tests/minigrad/inspect"],
    "minigrad/compat": ["tests/minigrad/test_names.py", "tests/minigrad/ops"],
    "transformer": ["tests/transformer"],
    "transformer/cli": ["tests/transformer/cli"],
    "transformer/data": ["tests/transformer/data"],
    "transformer/training": ["tests/transformer/training", "tests/transformer"],
    "transformer/explore": ["tests/transformer/explore"],
    "transformer/explore/plots": ["tests/transformer/plots"],
}
