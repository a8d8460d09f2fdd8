package gemm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// blockings returns very different blockings: for small and large caches, and with all of A packed.
func blockings() map[string]blocking {
	list := map[string]blocking{
		"this machine's": *cut.Load(),
		"unknown caches": blockingFor(caches{}),
		"Golden Cove":    blockingFor(caches{64, 64, 12, 2 << 20, 100 << 20}),
		"Zen 4":          blockingFor(caches{64, 64, 8, 1 << 20, 32 << 20}),
		"Haswell":        blockingFor(caches{64, 64, 8, 256 << 10, 6 << 20}),
	}
	odd := blockingFor(caches{})
	odd.depth, odd.rows, odd.sub, odd.packed, odd.resident = 32, 12, 12, 1<<12, 0
	list["tiny blocks"] = odd
	odd.depth, odd.rows, odd.sub, odd.packed, odd.resident = 1024, 480, 240, 1<<24, 1<<24
	odd.l1.ways = 1
	list["large blocks, A packed"] = odd
	odd.depth = 64
	list["A packed"] = odd
	return list
}

// The bits of a product are the same for every blocking, so the results of a run depend on the kind
// of processor and not on the individual processor.
func TestBlockingNeverShowsInBits(t *testing.T) {
	testneed.NotShort(t, "it multiplies large matrices")
	before := cut.Load()
	defer cut.Store(before)
	cases := append([]testCase{
		{m: 300, n: 70, k: []int{1100}},
		{m: 64, n: 300, k: []int{1024, 512}, acc: true},
		{m: 150, n: 140, k: []int{2100}, tA: true},
		{m: 40, n: 520, k: []int{600}, tB: true, bias: true},
	}, largeCases...)
	r := rand.New(rand.NewPCG(5, 5))
	odd := 16
	if testing.Short() {
		cases, odd = cases[3:4], 3
	}
	for range odd {
		cases = append(cases, oddCase(r))
	}
	every := blockings()
	check := func(t *testing.T, cases []testCase, bf16 bool) {
		for i, tc := range cases {
			tc.bf16 = bf16
			var want []float32
			first := ""
			for name, b := range every {
				cut.Store(&b)
				tc.onlyBits = want != nil
				got := tc.run(t, uint64(i))
				if want == nil {
					want, first = got, name
				}
				same(t, fmt.Sprintf("%v, blocks for %s against %s", tc, name, first), got, want)
			}
		}
	}
	onEachPath(t, func(t *testing.T) { check(t, cases, false) })
	onEachBF16Path(t, func(t *testing.T) { check(t, cases[:min(8, len(cases))], true) })
}

// Rows 4 KiB apart share a set; rows one line further apart, or fewer rows than the cache has ways,
// do not collide.
func TestCollide(t *testing.T) {
	zen4 := caches{line: 64, sets: 64, ways: 8}
	golden := caches{line: 64, sets: 64, ways: 12}
	for _, c := range []struct {
		name   string
		caches caches
		rows   int
		stride int
		want   bool
	}{
		{"4 KiB", zen4, 12, 4096, true},
		{"8 KiB", zen4, 12, 8192, true},
		{"4 KiB and an element", zen4, 12, 4100, true},
		{"4 KiB and a line", zen4, 12, 4160, false},
		{"2 KiB, six rows in a set", zen4, 12, 2048, false},
		{"1 KiB", zen4, 12, 1024, false},
		{"few rows", zen4, 6, 4096, false},
		{"more ways", golden, 10, 4096, false},
		{"12 rows in 12 ways", golden, 12, 4096, true},
		{"12 rows in two sets of 12 ways", golden, 12, 2048, false},
	} {
		if got := c.caches.collide(c.rows, c.stride); got != c.want {
			t.Errorf("%s: %d rows collide: %v, want %v", c.name, c.rows, got, c.want)
		}
	}
}

// The cache sizes that the processor reports equal those that Linux reports.
func TestMachineCaches(t *testing.T) {
	c := machineCaches()
	if c == (caches{}) {
		t.Log("this processor does not report its caches")
		return
	}
	at := func(index, name string) (string, bool) {
		b, err := os.ReadFile(filepath.Join("/sys/devices/system/cpu/cpu0/cache", "index"+index, name))
		return strings.TrimSpace(string(b)), err == nil
	}
	seen := 0
	for _, index := range []string{"0", "1", "2", "3"} {
		level, ok := at(index, "level")
		kind, _ := at(index, "type")
		size, _ := at(index, "size")
		if !ok || kind == "Instruction" {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(size, "K"))
		if err != nil {
			continue
		}
		have := map[string]int{"1": c.line * c.sets * c.ways, "2": c.l2, "3": c.l3}[level]
		if have != kib<<10 {
			t.Errorf("cache of level %s has %d bytes by cpuid, %s by Linux", level, have, size)
		}
		seen++
	}
	t.Logf("%+v, %d of them compared; blocks %+v", c, seen, *cut.Load())
}
