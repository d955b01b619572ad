"""Parts of other models than the paper's, each to be assigned in place of a part of a layer."""
