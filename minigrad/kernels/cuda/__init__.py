"""The place of bodies for arrays on a GPU: CUDA kernels by `cupy.ElementwiseKernel` and `cupy.RawKernel`.

None exists yet: on a GPU the definitions run. The first candidates are those of many small launches, each about 20 µs:
softmax, layer norm, the mask and softmax of attention, cross-entropy, and Adam. A body is registered as in
`minigrad.kernels.host`, with a `suits` that takes arrays of CuPy, and enters `minigrad.kernels` once it has run on a
card.
"""
