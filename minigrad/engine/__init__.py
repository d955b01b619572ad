"""The engine: records operations, and sends gradients back through them.

    primitive.py  an operation, or a function of several: how it is defined, called and recorded
    rules.py      its gradient rules: what each asks for, and how it is called
    operands.py   conversion, dtypes and devices of what it is given
    node.py       what a recorded operation leaves behind
    backward.py   the backward pass
    watch.py      the one seam for profiles, memory meters, tapes
    errors.py     messages that name the operation
"""
