"""Training: the loop with its options, checkpoints and log; what makes an update fast; what keeps a run safe.

    loop.py, trainer.py    the loop, and one run: its updates, validations and checkpoints, saved and restored
    parallel_gradients.py  a batch divided over threads and the ranks of MPI; threads.py says over how many
    recorded_gradients.py  the step of a GPU as one graph
    options.py, recipes.py the choices of a run, and those that suit a task; plan.py has those that suit a text
    checkpoints.py, log.py what a run saves
    run_folder.py          where it saves: names, pointers, the lock; files that are whole or as they were
    signals.py, messages.py  what stops it, and what may get lost
    metrics.py, memory.py  what compares a translation with its reference; what a model takes
"""

from transformer.training.options import TrainingOptions
from transformer.training.parallel_gradients import DistributedGradients, ParallelGradients

__all__ = ["DistributedGradients", "ParallelGradients", "TrainingOptions"]
