"""Prints, as JSON, what decides the last bits of a result on this machine; run in a process of its own."""

import json

import numpy as np
from threadpoolctl import threadpool_info

print(json.dumps({
    "numpy": np.__version__,
    "instructions": sorted(np.show_config(mode="dicts")["SIMD Extensions"]["found"]),
    "blas": [[pool["internal_api"], pool["version"], pool.get("architecture")] for pool in threadpool_info()
             if pool["user_api"] == "blas"],
}))
