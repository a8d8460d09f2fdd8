# To be sourced: sets the environment for "go build -tags cuda", so that gorgonia.org/cu finds
# GraphNB's own cuda.h. CUDA need not be installed.
CGO_CFLAGS="-O2 -g -I$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cuda/internal/shim/include"
export CGO_CFLAGS CGO_ENABLED=1
