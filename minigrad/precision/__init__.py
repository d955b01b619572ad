"""Mixed precision: float16 arithmetic with a float32 master copy, loss scaling, TF32."""
