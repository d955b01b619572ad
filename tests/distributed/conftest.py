"""What the tests of several ranks need: an MPI that starts."""

import pytest

from tests.distributed.mpirun import no_mpi


@pytest.fixture(scope="session")
def mpi() -> None:
    """Skip the test where no ranks can be started, with the reason; tried once for all tests."""
    reason = no_mpi()
    if reason is not None:
        pytest.skip(f"no ranks: {reason}")
