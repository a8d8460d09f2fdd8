package sample

import "github.com/graphnb/graphnb/internal/simd"

// laborDraws writes the draw of each source: 16 or 8 at once, and the last ones from a copy.
func laborDraws(out []uint32, nbrs []int32, w *laborWords) {
	if path == simd.Go {
		laborGo(out, nbrs, w)
		return
	}
	if blocks := len(nbrs) / width; blocks > 0 {
		laborBlocks(&out[0], &nbrs[0], blocks, w)
	}
	if done := len(nbrs) &^ (width - 1); done < len(nbrs) {
		var ids [width]int32
		var draws [width]uint32
		copy(ids[:], nbrs[done:])
		laborBlocks(&draws[0], &ids[0], 1, w)
		copy(out[done:], draws[:])
	}
}

// laborBlocks writes the draws of 16·blocks sources.
func laborBlocks(out *uint32, nbrs *int32, blocks int, w *laborWords) {
	if path == simd.AVX512 {
		laborAVX512(out, nbrs, blocks, w)
	} else {
		laborAVX2(out, nbrs, 2*blocks, w)
	}
}

// laborAVX512 writes the draws of 16·blocks sources.
//
//go:noescape
func laborAVX512(out *uint32, nbrs *int32, blocks int, words *laborWords)

// laborAVX2 writes the draws of 8·blocks sources.
//
//go:noescape
func laborAVX2(out *uint32, nbrs *int32, blocks int, words *laborWords)
