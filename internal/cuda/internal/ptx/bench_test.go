package ptx

import (
	"os"
	"testing"
)

// BenchmarkLaunch measures the interpreter's speed, in instructions summed over all threads.
func BenchmarkLaunch(b *testing.B) {
	src, err := os.ReadFile("../../kernels/reduce.ptx")
	if err != nil {
		b.Fatal(err)
	}
	mod, err := Parse("reduce.ptx", string(src))
	if err != nil {
		b.Fatal(err)
	}
	k, err := mod.Kernel("sum_chunks_f32")
	if err != nil {
		b.Fatal(err)
	}
	for name, workers := range map[string]int{"races": 0, "one core": 1, "two cores": 2} {
		b.Run(name, func(b *testing.B) {
			m := &Machine{Memory: NewMemory(0, 1<<30), Races: workers == 0, Workers: workers}
			const n = 1 << 20
			x, err := m.Memory.Alloc(4 * n)
			if err != nil {
				b.Fatal(err)
			}
			y, err := m.Memory.Alloc(4 * n)
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Memory.Fill(x, []byte{0, 0, 128, 63}, 4*n); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := m.Launch(k, D(32), D(256), 0, y, x, int64(n), int64(1<<15)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(m.Stats().Instructions)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}
