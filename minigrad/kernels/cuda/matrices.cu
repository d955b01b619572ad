// Products of many matrices that lie anywhere, and sums of columns.

const int DEEP = 16;  // a block computes TILE x TILE elements of the product (launching.py), DEEP terms at a time

// c = alpha * a @ b for (B, H, M, K) and (B, H, K, N), with the strides of each axis, in elements. 16 x 16 threads, each
// with 4 x 4 elements, 16 apart.
extern "C" __global__ void product(const real* a, long long a_batch, long long a_head, long long a_row, long long a_term,
        const real* b, long long b_batch, long long b_head, long long b_term, long long b_column,
        real* c, long long c_batch, long long c_head, long long c_row, long long c_column,
        long long heads, long long rows, long long terms, long long columns, double alpha) {
    __shared__ real left[DEEP][TILE + 1], right[DEEP][TILE + 1];
    long long batch = blockIdx.x / heads, head = blockIdx.x % heads;
    a += batch * a_batch + head * a_head;
    b += batch * b_batch + head * b_head;
    c += batch * c_batch + head * c_head;
    int thread = threadIdx.y * 16 + threadIdx.x;
    long long first_row = blockIdx.y * TILE, first_column = blockIdx.z * TILE;
    real sums[4][4] = {};
    for (long long start = 0; start < terms; start += DEEP) {
        for (int e = thread; e < TILE * DEEP; e += 256) {  // neighbouring threads read neighbouring memory
            int term = a_term == 1 ? e % DEEP : e / TILE, row = a_term == 1 ? e / DEEP : e % TILE;
            bool inside = start + term < terms && first_row + row < rows;
            left[term][row] = inside ? a[(first_row + row) * a_row + (start + term) * a_term] : 0;
            term = b_column == 1 ? e / TILE : e % DEEP;
            int column = b_column == 1 ? e % TILE : e / DEEP;
            inside = start + term < terms && first_column + column < columns;
            right[term][column] = inside ? b[(start + term) * b_term + (first_column + column) * b_column] : 0;
        }
        __syncthreads();
        for (int term = 0; term < DEEP; term++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sums[i][j] += left[term][threadIdx.y + 16 * i] * right[term][threadIdx.x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            long long row = first_row + threadIdx.y + 16 * i, column = first_column + threadIdx.x + 16 * j;
            if (row < rows && column < columns) c[row * c_row + column * c_column] = (real)alpha * sums[i][j];
        }
}

// x (rows, columns) -> parts (gridDim.y, columns), each the sums over its share of the rows. 32 x 16 threads.
extern "C" __global__ void column_sums(const real* x, real* parts, long long rows, long long columns) {
    __shared__ real sums[16][32];
    long long column = blockIdx.x * 32 + threadIdx.x;
    real sum = 0;
    if (column < columns)
        for (long long row = blockIdx.y * 16 + threadIdx.y; row < rows; row += gridDim.y * 16)
            sum += x[row * columns + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= columns) return;
    for (int y = 1; y < 16; y++) sum += sums[y][threadIdx.x];
    parts[blockIdx.y * columns + column] = sum;
}
