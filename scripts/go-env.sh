# To be sourced: gnb and the programs of the tests are built with the tag that the kernel gives cells (CellFlags in
# gnb/cmd/gnb/internal/kernel/env.go), so that gRPC and what imports it are not compiled twice. The user's flags stay.
GOFLAGS=$(go env GOFLAGS)
case " $GOFLAGS" in
  *" -tags="* | *" --tags="*) ;;
  *) GOFLAGS="${GOFLAGS:+$GOFLAGS }-tags=grpcnotrace" ;;
esac
export GOFLAGS
