# Sourced: what "go build -tags cuda" needs in the environment. gorgonia.org/cu finds GraphNB's own
# cuda.h by it; nothing of CUDA has to be installed.
CGO_CFLAGS="-O2 -g -I$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cuda/internal/shim/include"
export CGO_CFLAGS CGO_ENABLED=1
