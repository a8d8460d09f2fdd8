# To be sourced: sets the environment for "go build -tags cuda", so that gorgonia.org/cu finds
# GraphNB's own cuda.h. CUDA need not be installed; if it is, its own header is not used. Package
# internal/cudaheader says how, and sets the same for notebooks.
CPATH="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/internal/cuda/internal/shim/include${CPATH:+:$CPATH}"
C_INCLUDE_PATH="${C_INCLUDE_PATH:+$C_INCLUDE_PATH:}/usr/local/cuda/include:/opt/cuda/include:/usr/local/cuda-11.0/targets/x86_64-linux/include:/usr/local/cuda-10.2/include"
export CPATH C_INCLUDE_PATH CGO_ENABLED=1
