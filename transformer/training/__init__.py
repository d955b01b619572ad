"""Training: the loop with its options, checkpoints and log; what makes an update fast; what keeps a run safe.

    loop.py, trainer.py    the loop, and one run: its updates, validations and checkpoints, saved and restored
    parallel_gradients.py  a batch divided over threads and the ranks of MPI; threads.py says over how many
    options.py, recipes.py the choices of a run, and those that suit a task; plan.py has those that suit a text
    checkpoints.py, progress.py, log.py  what a run saves
    run_folder.py, files.py  where it saves: names, pointers, the lock; files that are whole or as they were
    signals.py, messages.py  what stops it, and what may get lost
    validation.py, metrics.py  what is measured between updates
    profiling.py, memory.py  parts of these
"""

from transformer.training.options import TrainingOptions
from transformer.training.parallel_gradients import DistributedGradients, ParallelGradients

__all__ = ["DistributedGradients", "ParallelGradients", "TrainingOptions"]
