"""Bodies compiled by Numba."""
