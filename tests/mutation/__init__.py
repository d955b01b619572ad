"""Mutation testing: small faults are put into the source, one at a time, and the tests must notice each.

``python -m tests.mutation --count 200`` draws 200 mutants of minigrad and reports those that no test notices.
`mutators` says what a mutant is, `measure` which tests run which line, `campaign` lets mutants meet their tests;
`table` says which tests belong to which folder, `equivalent.toml` which survivors change nothing that a test could see.
"""
