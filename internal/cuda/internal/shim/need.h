/* Includes cuda.h, or stops with an error that says what to do if it is not this module's own. */
#if !__has_include(<cuda.h>)
#error "GraphNB: -tags cuda needs GraphNB's own cuda.h: source scripts/cuda-env.sh of the checkout; the kernel of \"gnb install --cuda\" has it set"
#endif
#include <cuda.h>
#ifndef GRAPHNB_CUDA_H
#error "GraphNB: -tags cuda compiles against GraphNB's own cuda.h, not that of an installed CUDA: source scripts/cuda-env.sh of the checkout; the kernel of \"gnb install --cuda\" has it set"
#endif
