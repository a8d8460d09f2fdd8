# To be sourced: the tests build programs with the tag that the kernel gives cells (CellFlags in
# gnb/cmd/gnb/internal/kernel/env.go), so that gRPC and what imports it are not compiled twice.
case " ${GOFLAGS:-}" in
  *" -tags="* | *" --tags="*) ;;
  *) export GOFLAGS="${GOFLAGS:+$GOFLAGS }-tags=grpcnotrace" ;;
esac
