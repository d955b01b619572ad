#!/bin/bash
# Four machines, two ranks on each, four threads in each rank. Submit it where `python` has this package:
#     sbatch slurm.sh
#SBATCH --job-name=enja
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
# SIGTERM for the ranks, two minutes before the end: they save a checkpoint and stop.
#SBATCH --signal=TERM@120
# After the loss of a machine, Slurm puts the job into the queue again.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=enja-%j.log

out=runs/enja
resume=()
if [ -e "$out/latest" ]; then resume=(--resume); fi

srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" \
    python -m transformer train --train train.en train.ja --valid dev.en dev.ja --tokens bpe --config base \
    --out "$out" --threads "$SLURM_CPUS_PER_TASK" --quiet "${resume[@]}"
status=$?

# 143 is 128 + SIGTERM: the time was up. The job goes on in the queue, unless somebody has cancelled it.
if [ "$status" -eq 143 ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
