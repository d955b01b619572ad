#!/bin/bash
# Two ranks of four threads on each of the four machines of the file hosts, over ssh. Start it on the first of them,
# where `python` and `mpirun` are those of this package; the other machines have both at the same paths.

out=runs/enja
resume=()
if [ -e "$out/latest" ]; then resume=(--resume); fi

# --bind-to none: by default each rank is bound to one core, and its threads would share it.
# -x: the other machines get no variable but those that are named.
exec "$(command -v mpirun)" --hostfile hosts -n 8 --map-by ppr:2:node --bind-to none -x PATH \
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --tokens bpe --config base \
    --out "$out" --threads 4 "${resume[@]}"
