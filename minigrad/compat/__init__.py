"""What names and spellings from PyTorch and NumPy are called here."""
