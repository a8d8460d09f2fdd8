//go:build !amd64

package sample

// laborDraws writes the draw of each source.
func laborDraws(out []uint32, nbrs []int32, w *laborWords) { laborGo(out, nbrs, w) }
