"""Bodies for float32 and float64 arrays in host memory, of NumPy and its BLAS: what runs by default.

What they gain over the definitions: results are written in place, sums along short rows are products with a vector of
ones, the softmax of short rows does without their maxima, and several heads of attention are read where they lie.
Importing a module of this folder registers its bodies.
"""
