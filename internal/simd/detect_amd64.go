package simd

import "golang.org/x/sys/cpu"

func detect() Path {
	switch x := &cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX2:
		return AVX512
	case x.HasAVX2:
		return AVX2
	}
	return Go
}
