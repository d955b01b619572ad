// One launch for many arrays. `table` has a row for each: the addresses of FIELDS arrays of the same size, that size,
// and the number of the first of its blocks, each of which takes CHUNK elements.

struct Share {  // of this block: its arrays from their element `first` up to `last`
    const long long* row;
    long long first, last;

    __device__ Share(const long long* table, long long count, int fields) {
        long long low = 0, high = count;  // bisection: the last row that begins no later than this block
        while (high - low > 1) {
            long long middle = (low + high) / 2;
            (table[middle * (fields + 2) + fields + 1] <= blockIdx.x ? low : high) = middle;
        }
        row = table + low * (fields + 2);
        first = (blockIdx.x - row[fields + 1]) * CHUNK;
        last = min(first + CHUNK, row[fields]);
    }
    __device__ real* array(int field) { return (real*)row[field]; }
};

extern "C" __global__ void adam(const long long* table, long long count, double beta1, double new1, double beta2,
        double new2, double rate, double epsilon, double decay, double left, long long decoupled) {
    Share share(table, count, 4);
    real *p = share.array(0), *gradient = share.array(1), *m = share.array(2), *v = share.array(3);
    for (long long i = share.first + threadIdx.x; i < share.last; i += blockDim.x) {
        real now = p[i], g = gradient[i];
        if (decoupled) now *= (real)left;
        else g += (real)decay * now;
        m[i] = (real)beta1 * m[i] + (real)new1 * g;
        v[i] = (real)beta2 * v[i] + (real)new2 * g * g;
        p[i] = now - (real)rate * m[i] / (sqrt(v[i]) + (real)epsilon);
    }
}

extern "C" __global__ void squares(const long long* table, long long count, real* sums) {
    __shared__ real of_warps[32];
    Share share(table, count, 1);
    real sum = 0;
    for (long long i = share.first + threadIdx.x; i < share.last; i += blockDim.x)
        sum += share.array(0)[i] * share.array(0)[i];
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < blockDim.x / 32; warp++) sum += of_warps[warp];
    sums[blockIdx.x] = sum;
}

extern "C" __global__ void scale(const long long* table, long long count, const real* factor) {
    Share share(table, count, 1);
    for (long long i = share.first + threadIdx.x; i < share.last; i += blockDim.x) share.array(0)[i] *= *factor;
}
