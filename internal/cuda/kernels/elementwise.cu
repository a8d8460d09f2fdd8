// Elementwise operations: out[i] = op(x[i], …) for i < n.
//
// Grid: blocks of 256 threads, which handle 1024 elements a round, striding. Bytes an element: 4 for each input and
// the output, 4 more with acc. 2^28 elements of a binary operation: 3.2 GB, 0.67 ms.
#include "common.cuh"

enum { SCALE, RELU, LEAKY_RELU, ELU, SIGMOID, TANH, EXP, GELU, SQRT, RECIPROCAL };  // tensor.UnaryOp
enum { ADD, SUB, MUL };                                                           // tensor.BinaryOp

// spread_f32: out[i] = x[0].
KERNEL spread_f32(float *__restrict__ out, const float *__restrict__ x, i64 n, i64 acc) {
  float v = x[0];
#pragma unroll 1
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) out[i] = acc ? out[i] + v : v;
}

KERNEL binary_f32(i64 op, float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, i64 n, i64 acc) {
  map2(out, x, y, n, acc, [op](float a, float b) { return op == ADD ? a + b : op == SUB ? a - b : a * b; });
}

// normal computes the distribution function Φ and the density of the normal distribution, by the polynomial of simd.Normal:
// Φ is within 4e-7 of its value, relative to it.
__device__ __forceinline__ float normal(float x, float *density) {
  float e = expf(-.5f * x * x), t = 1 / (1 + .3f * fabsf(x));
  float p = .035423573f * t - .15615776f;
  p = p * t + .2045556f;
  p = p * t - .05203292f;
  p = p * t + .127691194f;
  p = p * t + .100176126f;
  p = p * t + .12071211f;
  p = p * t + .119632006f;
  float tail = e * (p * t);
  *density = e * .3989422804f;
  return x > 0 ? 1 - tail : tail;
}

// unary computes op(x). RELU keeps NaN and turns -0 into 0.
__device__ __forceinline__ float unary(i64 op, float x, float alpha) {
  switch (op) {
    case RELU: return x <= 0 ? 0 : x;
    case LEAKY_RELU: return x > 0 ? x : alpha * x;
    case ELU: return x > 0 ? x : alpha * expm1f(x);
    case SIGMOID: return 1 / (1 + expf(-x));
    case TANH: return tanhf(x);
    case EXP: return expf(x);
    case SQRT: return x <= alpha ? 0 : sqrtf(x);
    case RECIPROCAL: return 1 / (x + alpha);
    case GELU: {
      float density;
      return x * normal(x, &density);
    }
  }
  return alpha * x;
}

KERNEL unary_f32(i64 op, float *__restrict__ out, const float *__restrict__ x, float alpha, i64 n, i64 acc) {
  map1(out, x, n, acc, [=](float v) { return unary(op, v, alpha); });
}

// unary_grad_f32: out[i] = dy[i]·op'(x[i]). v is x for ReLU, LeakyReLU and GELU, and y for the others: ELU's slope below
// 0 is y + alpha, and y > 0 where x > 0.
KERNEL unary_grad_f32(i64 op, float *__restrict__ out, const float *__restrict__ dy, const float *__restrict__ v, float alpha, i64 n, i64 acc) {
  map2(out, dy, v, n, acc, [=](float d, float v) {
    switch (op) {
      case RELU: return v <= 0 ? 0 : d;
      case LEAKY_RELU: return v > 0 ? d : d * alpha;
      case ELU: return v > 0 ? d : d * (v + alpha);
      case SIGMOID: return d * (v * (1 - v));
      case TANH: return d * (1 - v * v);
      case SQRT: return v == 0 ? 0 : d * (.5f / v);
      case RECIPROCAL: return d * -(v * v);
      case GELU: {
        float density, cdf = normal(v, &density);
        return d * (cdf + v * density);
      }
    }
    return d * v;
  });
}
