"""The operations that a Transformer does without, by kind."""
