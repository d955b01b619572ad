"""Parts of other models than the paper's: grouped-query attention, rotary positions; and a decoder-only model."""
