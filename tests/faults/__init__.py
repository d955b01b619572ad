"""Faults while the program is used: kills, full disks, second writers, damage, edits, odd command lines, odd operands,
killed ranks.

``python -m tests.faults --count 1000`` meets 1,000 faults of each kind, each drawn from (kind, seed, index).
`campaign` runs them, `children` has the processes, `trainings` the runs that are disturbed, `verdict` what a command
may say; each other module is a kind, whose ``fault(rng, folder, base)`` describes a fault and says what went wrong.
"""
