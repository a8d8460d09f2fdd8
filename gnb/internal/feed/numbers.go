package feed

// Numbers returns the numbers from 0 to n-1.
func Numbers(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
