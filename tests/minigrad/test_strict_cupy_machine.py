"""The stand-in's machine: what waits for it, what is sent there, its memory, and how its products round."""

import threading

import numpy as np
import pytest

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def cupy(stand_in):
    return stand_in.cupy


@pytest.fixture
def array(cupy):
    return cupy.asarray(HOST)


# ---------------------------------------------------------------------------- waits


@pytest.mark.parametrize(
    ("cause", "use"),
    [
        ("float()", lambda cp, x: float(x.sum())),
        ("int()", lambda cp, x: int(x.sum())),
        ("bool()", lambda cp, x: bool(x.sum() > 0)),
        ("bool()", lambda cp, x: 1 if x.any() else 0),
        ("item", lambda cp, x: x.sum().item()),
        ("tolist", lambda cp, x: x.tolist()),
        ("get", lambda cp, x: x.get()),
        ("get", lambda cp, x: cp.asnumpy(x)),
        ("repr", lambda cp, x: repr(x)),
        ("boolean mask", lambda cp, x: x[x > 2]),
        ("boolean mask", lambda cp, x: x.__setitem__(x > 2, 0)),
        ("boolean mask", lambda cp, x: cp.add.at(x, x > 2, 1)),
        ("nonzero", lambda cp, x: cp.nonzero(x)),
        ("nonzero", lambda cp, x: x.nonzero()),
        ("where", lambda cp, x: cp.where(x > 2)),
        ("unique", lambda cp, x: cp.unique(x)),
        ("bincount", lambda cp, x: cp.bincount(cp.asarray([1, 2]))),
        ("compress", lambda cp, x: x.compress(cp.asarray([True, False]), axis=0)),
        ("histogram", lambda cp, x: cp.histogram(x)),
        ("nanmax", lambda cp, x: cp.nanmax(x)),
        ("union1d", lambda cp, x: cp.union1d(x, x)),
    ],
)
def test_each_way_to_wait_is_counted(stand_in, array, cause, use):
    use(stand_in.cupy, array)
    assert stand_in.synchronizations == {cause: 1}


def test_what_does_not_wait_is_not_counted(stand_in, array):
    cupy = stand_in.cupy
    index = cupy.asarray([1, 0])
    (
        array[index],
        array[0, 1:],
        array.shape,
        len(array),
        array.reshape(3, 2),
        cupy.where(array > 1, array, 0.0),
    )
    array[index] = 0
    cupy.add.at(array, index, 1.0)
    assert stand_in.synchronizations.total() == 0


# ---------------------------------------------------------------------------- uploads


@pytest.mark.parametrize(
    ("cause", "size", "use"),
    [
        ("asarray", 24, lambda cp, x: cp.asarray(HOST)),
        ("asarray", 16, lambda cp, x: cp.asarray([1, 2])),
        ("array", 48, lambda cp, x: cp.array(HOST, dtype=np.float64)),
        ("index", 16, lambda cp, x: x[[0, 1]]),
        ("index", 8, lambda cp, x: x[np.array([0])]),
        ("index", 8, lambda cp, x: cp.add.at(x, [1], 1)),
        ("index", 8, lambda cp, x: x.__setitem__([1], 1)),
        ("index", 16, lambda cp, x: x.take([1, 0], axis=0)),
        ("index", 8, lambda cp, x: cp.take(x, np.array([1]), axis=0)),
    ],
)
def test_each_way_to_send_an_array_is_counted(stand_in, array, cause, size, use):
    stand_in.clear()
    use(stand_in.cupy, array)
    assert stand_in.uploads == {cause: 1}
    assert stand_in.uploaded_bytes == {cause: size}
    assert stand_in.synchronizations == {}


def test_values_for_an_index_array_are_sent(stand_in, array):
    index = stand_in.cupy.asarray([1])
    stand_in.clear()
    array[index] = HOST[0].astype(np.float64)
    assert stand_in.uploaded_bytes == {"__setitem__": 12}  # in the array's dtype


def test_what_sends_no_array_is_not_counted(stand_in, array):
    cupy = stand_in.cupy
    stand_in.clear()
    with cupy.cuda.Device(1):
        cupy.array(array)  # from one device to another
    array[0, 1:] = 2.0
    cupy.asarray(np.float32(3)), cupy.asarray(4), cupy.full(3, 1.0), cupy.arange(5), array * np.float32(2)
    cupy.array([array, array])
    assert not stand_in.uploads


# ---------------------------------------------------------------------------- memory


def test_memory_is_used_while_arrays_are_alive_and_held_until_it_is_given_back(stand_in, cupy):
    memory, pool = stand_in.memory, cupy.get_default_memory_pool()
    before = pool.used_bytes()
    first = cupy.zeros(1000, np.float32)
    assert pool.used_bytes() - before == 4096  # whole blocks of 512
    view = first[2:]
    del first
    assert pool.used_bytes() - before == 4096  # the view keeps it
    second = view * 2
    assert pool.used_bytes() - before == 8192
    del view, second
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes()) == (before, before + 8192, 8192)
    assert cupy.cuda.Device(0).mem_info == (memory.limit - before - 8192, memory.limit)
    pool.free_all_blocks()
    assert pool.total_bytes() == before


def test_each_device_has_memory_of_its_own(cupy):
    pool = cupy.get_default_memory_pool()
    first = pool.used_bytes()
    with cupy.cuda.Device(1):
        before = pool.used_bytes()
        there = cupy.zeros(128)
        assert pool.used_bytes() - before == there.nbytes == 1024
    assert pool.used_bytes() == first


def test_no_more_memory_is_given_than_there_is(stand_in, cupy):
    memory = stand_in.memory
    memory.limit = memory.used[0] + 2048
    kept, total = cupy.zeros(1024, np.uint8), memory.used[0]
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError) as caught:
        cupy.ones(1025, np.uint8)
    assert isinstance(caught.value, MemoryError)
    assert str(caught.value) == f"Out of memory allocating 1,536 bytes (allocated so far: {total:,} bytes)."
    del caught
    assert memory.used[0] == total
    assert cupy.ones(1024, np.uint8).shape == (1024,)  # there is room for that
    del kept
    assert memory.used[0] == total - 1024


def test_memory_in_cycles_is_found_before_it_is_out(stand_in, cupy):
    stand_in.memory.limit = stand_in.memory.used[0] + 1024
    cycle = [cupy.zeros(1024, np.uint8)]
    cycle.append(cycle)
    del cycle
    cupy.zeros(1024, np.uint8)


# ---------------------------------------------------------------------------- cuBLAS


def test_the_mode_of_products_belongs_to_a_thread_and_a_device(cupy):
    cublas, handle = cupy.cuda.cublas, cupy.cuda.get_cublas_handle
    first, found = handle(), []
    cublas.setMathMode(first, 3)
    with cupy.cuda.Device(1):
        assert cublas.getMathMode(handle()) == cublas.CUBLAS_DEFAULT_MATH
    thread = threading.Thread(target=lambda: found.append(cublas.getMathMode(handle())))
    thread.start()
    thread.join()
    assert found == [0]
    assert cublas.getMathMode(first) == 3
    cublas.setMathMode(first, cublas.CUBLAS_DEFAULT_MATH)


def test_the_second_device_is_the_older_one(cupy):
    assert [cupy.cuda.Device(i).compute_capability for i in range(2)] == ["80", "75"]
