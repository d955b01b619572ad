"""Training: the loop with its options, checkpoints and log; what makes an update fast; what keeps a run safe.

    parallel_gradients.py  a batch divided over threads; threads.py says over how many
    distributed_gradients.py  a batch divided over the ranks of MPI, too
    loop.py, trainer.py    the loop, and one run with its updates, validations and checkpoints; restoring.py resumes it
    options.py, recipes.py the choices of a run, and those that suit a task; plan.py has those that suit a text
    checkpoints.py, log.py the files of a run; run_folder.py names and removes them, files.py reads and writes them
    lock.py, signals.py, messages.py  one writer, what stops it, and what may get lost
    validation.py, metrics.py  what is measured between updates
    progress.py, profiling.py, memory.py  parts of these
"""

from transformer.training.options import TrainingOptions
from transformer.training.parallel_gradients import DistributedGradients, ParallelGradients

__all__ = ["DistributedGradients", "ParallelGradients", "TrainingOptions"]
