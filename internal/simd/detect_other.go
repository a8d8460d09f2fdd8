//go:build !amd64

package simd

func detect() Path { return Go }
