"""The stand-in's memory: the bytes of each device that arrays use, and that CuPy's pool holds, under a limit."""

import gc

BLOCK = 512  # the pool hands out multiples of this many bytes
CARD = 2**34  # bytes of memory of a device, unless a test sets another limit


class OutOfMemoryError(MemoryError):
    """``cupy.cuda.memory.OutOfMemoryError``: what an allocation raises for which there is no memory."""

    def __init__(self, size, total):
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


class Memory:
    """What each device's memory is used for. Set `limit` to have a small device.

    Attributes:
        used: bytes of the arrays that are alive, by device.
        held: bytes that the pool has taken from the device and keeps, by device: the most that was used.
        limit: bytes that a device has.
    """

    def __init__(self, devices):
        self.used, self.held, self.limit = [0] * devices, [0] * devices, CARD

    def clear(self):
        """The pool gives back what is free, and the limit is what it was at first."""
        self.held[:], self.limit = self.used, CARD

    def allocate(self, device, size):
        """Take `size` bytes, rounded up to what is returned; OutOfMemoryError where there is no room."""
        block = -(-size // BLOCK) * BLOCK
        self.used[device] += block
        if self.used[device] > self.limit:
            gc.collect()  # as CuPy does, before it gives up
            if self.used[device] > self.limit:
                self.used[device] -= block
                self.held[device] = self.used[device]  # nor does the pool keep anything
                raise OutOfMemoryError(block, self.used[device])
        if self.used[device] > self.held[device]:
            self.held[device] = self.used[device]
        return block

    def free(self, device, block):
        self.used[device] -= block


memory = Memory(devices=2)
