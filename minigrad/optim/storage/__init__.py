"""Where the arrays of an optimizer's state lie, and how an update visits them."""
