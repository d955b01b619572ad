"""The engine: records operations, and sends gradients back through them."""
