package expect

import "math/rand/v2"

// Normal returns n normally distributed numbers, which the seed and n determine.
func Normal(n int, seed uint64) []float32 { return Normals(rand.New(rand.NewPCG(seed, uint64(n))), n) }

// Normals draws n normally distributed numbers.
func Normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
