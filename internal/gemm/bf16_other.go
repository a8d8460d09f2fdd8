//go:build !amd64

package gemm

type tileConfig struct{}

func nativeBF16() []*path { return nil }
