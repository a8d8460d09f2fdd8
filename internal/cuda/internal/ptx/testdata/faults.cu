// Kernels with faults that the interpreter must find, each next to a correct version where that is not obvious. No
// program uses them. scripts/nvrtc.py compiles this file to the PTX next to it (delete the limits.json and
// built.sha256 that it also writes):
//   .venv-cuda/bin/python3 scripts/nvrtc.py cuda/internal/ptx/testdata --limits
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

KERNEL add_one(float *out, const float *x, i64 n) { // correct
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + 1;
}

KERNEL add_one_too_far(float *out, const float *x, i64 n) { // reads x[n]
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) {
    float v = x[i];
    if (i < n || v > 1e30f) out[i] = v + 1;
  }
}

KERNEL write_before(float *out) { out[(i64)threadIdx.x - 1] = 0; }

KERNEL odd_address(char *out) { *(float *)(out + 2) = 0; }

// Sums of 64 values by a tree in shared memory.
template <bool SYNC>
__device__ void tree(float *out, const float *x) {
  __shared__ float part[64];
  part[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (SYNC) __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
KERNEL tree_sum(float *out, const float *x) { tree<true>(out, x); } // correct
KERNEL tree_sum_no_sync(float *out, const float *x) { tree<false>(out, x); }

KERNEL shared_too_far(float *out) {
  extern __shared__ float buffer[];
  buffer[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = buffer[threadIdx.x + 1];
}

KERNEL shared_unwritten(float *out) {
  __shared__ float buffer[64];
  if (threadIdx.x != 7) buffer[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = buffer[threadIdx.x];
}

KERNEL two_writers(u32 *out) { // threads i and i+32, in different warps
  out[threadIdx.x % 32] = threadIdx.x;
}

KERNEL two_blocks(u32 *out) { out[threadIdx.x] = threadIdx.x; } // a race, although both blocks write the same value

KERNEL byte_neighbours(unsigned char *out) { out[threadIdx.x] = 1; } // correct: no byte is shared

KERNEL counted(u32 *out) { atomicAdd(out, 1u); } // correct

KERNEL counted_and_read(u32 *out, u32 *seen) { // a thread reads while others count
  atomicAdd(out, 1u);
  if (threadIdx.x == 5) seen[0] = out[0];
}

KERNEL some_at_barrier(float *out) {
  if (threadIdx.x < 40) __syncthreads();
  out[threadIdx.x] = 0;
}

KERNEL two_barriers(float *out) {
  if (threadIdx.x < 40) {
    __syncthreads();
    out[threadIdx.x] = 0;
  } else {
    out[threadIdx.x] = 1;
    __syncthreads();
  }
}

// The lanes of a warp exchange values through shared memory.
template <bool SYNC>
__device__ void rotate(u32 *out) {
  __shared__ u32 line[32];
  line[threadIdx.x] = threadIdx.x;
  __syncthreads();
  u32 v = line[(threadIdx.x + 1) % 32];
  if (SYNC) __syncwarp();
  line[threadIdx.x] = 2 * v;
  __syncwarp();
  out[threadIdx.x] = v + line[(threadIdx.x + 1) % 32];
}
KERNEL rotate_sync(u32 *out) { rotate<true>(out); } // correct
KERNEL rotate_no_sync(u32 *out) { rotate<false>(out); }

KERNEL half_shuffle(u32 *out) { // lanes from 16 on never reach the shuffle
  u32 v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_xor_sync(~0u, v, 1);
  else
    __syncthreads();
  out[threadIdx.x] = v;
}

KERNEL shuffle_from_nobody(u32 *out) { out[threadIdx.x] = __shfl_sync(0xffu, threadIdx.x, threadIdx.x + 1); }

KERNEL shuffle_unnamed(u32 *out) { out[threadIdx.x] = __shfl_sync(0xffu, threadIdx.x, 0); }

KERNEL stops(u32 *out) {
  if (out[threadIdx.x] == 3) asm volatile("trap;");
}

KERNEL never_ends(volatile u32 *flag) {
  while (flag[0] == 0) {
  }
}

KERNEL divides(int *out, int by) { out[0] = out[0] / by; }

__device__ u32 table[4] = {3, 1, 4, 1};
__constant__ u32 fixed[2] = {5, 9};
KERNEL globals(u32 *out) { // correct
  out[threadIdx.x] = table[threadIdx.x % 4] + fixed[threadIdx.x % 2];
  __syncthreads();
  if (threadIdx.x == 0) table[3] = 6;
}

// Every lane votes, matches and shuffles in all modes, also in a warp with fewer than 32 threads.
KERNEL lanes(u32 *out) { // correct
  u32 t = threadIdx.x, n = blockDim.x, lane = t % 32, warp = t / 32;
  u32 here = n - warp * 32 < 32 ? (1u << (n - warp * 32)) - 1 : ~0u;
  u32 v[8] = {__ballot_sync(here, t % 3 == 0), (u32)__any_sync(here, t == 5), (u32)__all_sync(here, t < 40), __shfl_up_sync(here, t, 3),
              __shfl_down_sync(here, t, 4, 8),  __shfl_sync(here, t, 2, 16), __match_any_sync(here, t % 5), 0};
  int same;
  v[7] = __match_all_sync(here, warp, &same) + same;
  for (int i = 0; i < 8; i++) out[t * 8 + i] = v[i];
  if (lane == 0) out[n * 8 + warp] = __popc(here);
}

// A block counts by the votes of all its threads.
KERNEL block_votes(u32 *out) { // correct
  u32 n = __syncthreads_count(threadIdx.x % 3 == 0), a = __syncthreads_and(threadIdx.x < 100), o = __syncthreads_or(threadIdx.x == 9);
  out[threadIdx.x] = n | (a != 0) << 16 | (o != 0) << 17;
}

// An array that is indexed by a variable is in local memory.
KERNEL local_array(u32 *out, int n, int at, int skip) {
  u32 a[16];
  for (int i = 0; i < n; i++)
    if (i != skip) a[i] = i * i;
  out[threadIdx.x] = a[at + threadIdx.x];
}

// Atomics of every kind, whose results do not depend on the order of threads.
KERNEL atomics(u32 *w, u64 *d, float *f, int *s) { // correct
  __shared__ u32 most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  atomicMax(&most, threadIdx.x);
  atomicAdd(w, 1u);
  atomicMin(w + 1, threadIdx.x + 3);
  atomicOr(w + 2, 1u << threadIdx.x % 32);
  atomicInc(w + 3, 6u);
  atomicXor(w + 4, threadIdx.x);
  atomicAdd(d, (u64)threadIdx.x << 20);
  atomicMax(d + 1, (u64)threadIdx.x << 40);
  atomicCAS(d + 2, 0ull, 9ull);
  atomicAdd(f, .5f);
  atomicMin(s, -(int)threadIdx.x);
  atomicExch(s + 1, 4);
  __syncthreads();
  if (threadIdx.x == 0) w[5] = most;
}
