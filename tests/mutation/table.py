"""Which tests belong to which folder of the source. Edit this table when folders move."""

# The tests of the longest matching prefix meet a mutant first; then any test, among those of all matching prefixes,
# that runs the mutated line. Of a line that hardly any test is seen to run (it runs on import, in another process or
# compiled), the tests of the longest prefix stand in. Paths that do not exist are passed over.
TESTS = {
    "minigrad": ["tests/minigrad"],
    "minigrad/engine": ["tests/minigrad/engine"],
    "minigrad/device": ["tests/minigrad/device"],
    "minigrad/ops": ["tests/minigrad/ops"],
    "minigrad/tensor": ["tests/minigrad/tensor", "tests/minigrad/ops"],
    "minigrad/functional": ["tests/minigrad/functional"],
    "minigrad/nn": ["tests/minigrad/nn"],
    "minigrad/optim": ["tests/minigrad/optim"],
    "minigrad/func": ["tests/minigrad/func", "tests/minigrad/test_func.py", "tests/minigrad/test_checkpoint.py"],
    "minigrad/kernels": ["tests/minigrad/kernels"],
    "minigrad/kernels/host": ["tests/minigrad/kernels", "tests/minigrad/functional"],
    "minigrad/precision": ["tests/minigrad/precision", "tests/minigrad/optim"],
    "minigrad/inspect": ["tests/minigrad/inspect"],
    "minigrad/compat": ["tests/minigrad/compat", "tests/minigrad/ops"],
    "transformer": ["tests/transformer"],
    "transformer/explain": ["tests/transformer/explain"],
    "transformer/plots": ["tests/transformer/plots"],
}
