package dataset

import (
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/simd"
)

// rounding counts what becomes of numbers that are stored as float16. A nil one counts nothing.
type rounding struct {
	mu     sync.Mutex
	values int64
	other  int64   // numbers that are another one in float16
	zeros  int64   // of these, those that become 0
	most   float64 // largest relative error of the rest
}

// add compares numbers with their float16. Threads may call it at once.
func (r *rounding) add(src []float32, half []uint16) {
	if r == nil {
		return
	}
	var back [1 << 10]float32
	var other, zeros int64
	most := 0.0
	for lo := 0; lo < len(src); lo += len(back) {
		part := src[lo:min(lo+len(back), len(src))]
		simd.FromHalf(back[:len(part)], half[lo:lo+len(part)])
		for i, x := range part {
			y := back[i]
			if x == y {
				continue
			}
			if other++; y == 0 {
				zeros++
				continue
			}
			most = max(most, math.Abs(float64(x)-float64(y))/math.Abs(float64(x)))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values, r.other, r.zeros, r.most = r.values+int64(len(src)), r.other+other, r.zeros+zeros, max(r.most, most)
}

// say adds a notice if a number has changed.
func (r *rounding) say(where string, to *notice.List) {
	if r == nil || r.other == 0 {
		return
	}
	what := "numbers are rounded to float16"
	if r.other > r.zeros {
		what += fmt.Sprintf(", by at most %.2g %%", 100*r.most)
	}
	if r.zeros > 0 {
		what += fmt.Sprintf("; %d of them are too small for it and become 0", r.zeros)
	}
	to.Add(notice.Notice{Kind: notice.Unrepresentable, Where: where, What: what, Count: r.other, Of: r.values, Option: "f32 keeps them"})
}
