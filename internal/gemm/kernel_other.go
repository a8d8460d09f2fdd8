//go:build !amd64

package gemm

var paths = []*path{&plain}
