//go:build !amd64

package gemm

func machineCaches() caches { return caches{} }
