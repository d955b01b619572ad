"""Modules that a Transformer does without: more activations, losses, convolution, pooling, RMSNorm."""
