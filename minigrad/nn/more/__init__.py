"""Modules that a translating Transformer does without: activations, RMSNorm."""
