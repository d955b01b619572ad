// Operations on rows: softmax, layer norm, cross-entropy. Each block of threads takes a row; thread i its elements i,
// i + blockDim.x, … `real` is float or double.

const real INFINITE = 1.0 / 0.0;

struct Sum { __device__ real operator()(real x, real y) { return x + y; } };
struct Maximum { __device__ real operator()(real x, real y) { return x > y ? x : y; } };

// What the numbers of all threads give together: within each warp in a tree, then warp by warp. All threads get it.
template <class Combine> __device__ real over_block(real x, Combine combine) {
    __shared__ real of_warps[32];
    for (int apart = 16; apart; apart /= 2) x = combine(x, __shfl_xor_sync(~0u, x, apart));
    if (blockDim.x == 32) return x;
    __syncthreads();  // what was there before has been read
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = of_warps[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++) x = combine(x, of_warps[warp]);
    return x;
}

// scores (B, H, T, S) -> weights, in their place, and, where `dropped` is given, kept = weights * dropped * factor.
// The mask has the strides of its broadcast to (B, H, T, S), in elements. A row that may attend to nothing gives zeros.
extern "C" __global__ void softmax(real* scores, const bool* mask, long long batch_stride, long long head_stride,
        long long query_stride, long long key_stride, long long heads, long long queries, long long keys,
        const bool* dropped, double factor, real* kept) {
    long long row = blockIdx.x, query = row % queries, head = row / queries % heads, batch = row / queries / heads;
    scores += row * keys;
    mask += mask ? batch * batch_stride + head * head_stride + query * query_stride : 0;
    real top = -INFINITE, total = 0;
    for (int i = threadIdx.x; i < keys; i += blockDim.x) {
        if (mask && !mask[i * key_stride]) scores[i] = -INFINITE;
        top = Maximum()(scores[i], top);
    }
    top = over_block(top, Maximum());
    if (top == -INFINITE) top = 0;
    for (int i = threadIdx.x; i < keys; i += blockDim.x) total += scores[i] = exp(scores[i] - top);
    total = over_block(total, Sum());
    for (int i = threadIdx.x; i < keys; i += blockDim.x) {
        scores[i] /= total == 0 ? 1 : total;
        if (dropped) kept[row * keys + i] = scores[i] * dropped[row * keys + i] * (real)factor;
    }
}

// With dA' in `grad`, of the weights A after dropout: dS = A * (dA - sum(A * dA)) in its place; kept is A' again.
extern "C" __global__ void softmax_gradient(real* grad, const real* weights, long long keys, const bool* dropped,
        double factor, real* kept) {
    long long start = blockIdx.x * keys;
    real total = 0;
    for (long long i = start + threadIdx.x; i < start + keys; i += blockDim.x) {
        if (dropped) {
            grad[i] *= dropped[i] * (real)factor;
            kept[i] = weights[i] * dropped[i] * (real)factor;
        }
        total += weights[i] * grad[i];
    }
    total = over_block(total, Sum());
    for (long long i = start + threadIdx.x; i < start + keys; i += blockDim.x)
        grad[i] = weights[i] * (grad[i] - total);
}

extern "C" __global__ void layer_norm(const real* x, const real* weight, const real* bias, real* out, real* means,
        real* rstds, double eps, long long width) {
    x += blockIdx.x * width;
    out += blockIdx.x * width;
    real mean = 0, variance = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) mean += x[i];
    mean = over_block(mean, Sum()) / width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) variance += (x[i] - mean) * (x[i] - mean);
    real rstd = 1 / sqrt(over_block(variance, Sum()) / width + (real)eps);
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        real normalized = (x[i] - mean) * rstd;
        out[i] = (weight ? normalized * weight[i] : normalized) + (bias ? bias[i] : 0);
    }
    if (threadIdx.x == 0) means[blockIdx.x] = mean, rstds[blockIdx.x] = rstd;
}

// grad_x, and in `parts` (blocks, 2, width) the share of each block in the gradients of weight and bias.
extern "C" __global__ void layer_norm_gradient(const real* g, const real* x, const real* weight, const real* means,
        const real* rstds, real* grad_x, real* parts, long long rows, long long width) {
    real *to_weight = parts + 2 * blockIdx.x * width, *to_bias = to_weight + width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) to_weight[i] = to_bias[i] = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        long long start = row * width;
        real mean = means[row], rstd = rstds[row], through_mean = 0, through_rstd = 0;
        for (int i = threadIdx.x; i < width; i += blockDim.x) {
            real normalized = (x[start + i] - mean) * rstd, scaled = weight ? g[start + i] * weight[i] : g[start + i];
            through_mean += scaled;
            through_rstd += scaled * normalized;
            to_weight[i] += g[start + i] * normalized;
            to_bias[i] += g[start + i];
        }
        through_mean = over_block(through_mean, Sum()) / width;
        through_rstd = over_block(through_rstd, Sum()) / width;
        for (int i = threadIdx.x; i < width; i += blockDim.x) {
            real normalized = (x[start + i] - mean) * rstd, scaled = weight ? g[start + i] * weight[i] : g[start + i];
            grad_x[start + i] = rstd * (scaled - through_mean - normalized * through_rstd);
        }
    }
}

// Ids that come on the GPU are not checked: one that is out of range wraps around, as in CuPy.
__device__ long long wrapped(long long id, long long classes) {
    return (id % classes + classes) % classes;
}

extern "C" __global__ void row_losses(const real* logits, const long long* target, const bool* counted, real* losses,
        real* tops, real* log_totals, double smoothing, long long classes) {
    logits += blockIdx.x * classes;
    real top = -INFINITE, total = 0, sum = 0;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) top = Maximum()(logits[i], top);
    top = over_block(top, Maximum());
    if (top == -INFINITE) top = 0;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        total += exp(logits[i] - top);
        sum += logits[i] - top;
    }
    total = over_block(total, Sum());
    if (smoothing != 0) sum = over_block(sum, Sum());
    if (threadIdx.x) return;
    real log_total = log(total == 0 ? 1 : total);
    real loss = log_total - (1 - (real)smoothing) * (logits[wrapped(target[blockIdx.x], classes)] - top);
    if (smoothing != 0) loss -= (real)smoothing * sum / classes;
    losses[blockIdx.x] = counted[blockIdx.x] ? loss : 0;
    tops[blockIdx.x] = top;
    log_totals[blockIdx.x] = log_total;
}

extern "C" __global__ void row_losses_gradient(const real* g, const real* logits, const long long* target,
        const bool* counted, const real* tops, const real* log_totals, real* gradient, double smoothing,
        long long classes) {
    long long row = blockIdx.x, start = row * classes;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        real difference = exp(logits[start + i] - tops[row] - log_totals[row]) - (real)smoothing / classes;
        if (i == wrapped(target[row], classes)) difference -= 1 - (real)smoothing;
        gradient[start + i] = counted[row] ? g[row] * difference : 0;
    }
}
