"""Functions that a Transformer does not need: the same style as in the folder above, off the reading path."""
