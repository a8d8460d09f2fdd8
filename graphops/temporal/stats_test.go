package temporal_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/temporal"
)

// What repeats and what of the test is new is counted as plain loops over all events count it.
func TestStats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		n := 20 + r.IntN(60)
		var src, dst []int32
		var time []int64
		at := int64(1_700_000_000)
		for range n {
			at += int64(r.IntN(3))
			src, dst, time = append(src, int32(r.IntN(6))), append(dst, int32(r.IntN(20))), append(time, at)
		}
		e, err := temporal.New(20, src, dst, time)
		if err != nil {
			t.Fatal(err)
		}
		s, err := temporal.SplitTimes(time, temporal.SplitOptions{})
		if err != nil {
			continue
		}
		want := temporal.Stats{Events: n, First: time[0], Last: time[n-1], Times: 1, Train: s.Train, Val: s.Val - s.Train, Test: n - s.Val}
		seen := func(i, from, to int, same func(i, k int) bool) bool {
			for k := from; k < to; k++ {
				if k != i && same(i, k) {
					return true
				}
			}
			return false
		}
		pair := func(i, k int) bool { return src[i] == src[k] && dst[i] == dst[k] }
		for i := range n {
			if i > 0 && time[i] != time[i-1] {
				want.Times++
			}
			if seen(i, 0, i, pair) {
				want.Repeated++
			} else {
				want.Pairs++
			}
			if i >= s.Val && !seen(i, s.Val, i, pair) {
				want.TestPairs++
				if !seen(i, 0, s.Train, pair) {
					want.NewPairs++
				}
			}
		}
		for v := range int32(20) {
			has := func(from, to int) bool {
				for k := from; k < to; k++ {
					if src[k] == v || dst[k] == v {
						return true
					}
				}
				return false
			}
			if has(s.Val, n) {
				want.TestNodes++
				if !has(0, s.Train) {
					want.NewNodes++
				}
			}
		}
		if got := temporal.StatsOf(e); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// Events without a split, and without events, are described, too.
func TestStatsInWords(t *testing.T) {
	none, err := temporal.New(1, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := temporal.StatsOf(none); got.String() != "events: 0" || got.Surprise() != 0 {
		t.Errorf("%s, %v", got, got.Surprise())
	}
	one, err := temporal.New(2, []int32{0, 0}, []int32{1, 1}, []int64{1_700_000_000, 1_700_000_000})
	if err != nil {
		t.Fatal(err)
	}
	s := temporal.StatsOf(one)
	s.Unit = "s"
	if got := s.String(); !strings.HasPrefix(got, "events: 2 from 2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z, at 1 time; 1 pair, and 1 event of a pair that had one before (50.0 %)\nevents by time: no split, because no event is in the validation") {
		t.Error(got)
	}
	if text, err := json.Marshal(s); err != nil || !strings.Contains(string(text), `"no_split":"no event is in the validation`) {
		t.Errorf("%s, %v", text, err)
	}
	for unit, want := range map[string]string{"": "1700000000123456789", "s": "2023-11-14T22:13:20Z", "ms": "2023-11-14T22:13:20.123Z", "us": "2023-11-14T22:13:20.123456Z", "ns": "2023-11-14T22:13:20.123456789Z"} {
		at := map[string]int64{"": 1_700_000_000_123_456_789, "s": 1_700_000_000, "ms": 1_700_000_000_123, "us": 1_700_000_000_123_456, "ns": 1_700_000_000_123_456_789}[unit]
		if got := temporal.Moment(at, unit); got != want {
			t.Errorf("%d in %q is %s, want %s", at, unit, got, want)
		}
	}
}

func TestStretch(t *testing.T) {
	const noon = 1_700_049_600 // 2023-11-15, 12:00
	for _, c := range []struct {
		from, to int64
		unit     string
		want     string
	}{
		{noon, noon + 3600, "s", "2023-11-15 12:00 to 13:00"},
		{noon, noon + 5, "s", "2023-11-15 12:00"},
		{noon * 1000, (noon + 86400) * 1000, "ms", "2023-11-15 to 2023-11-16"},
		{3, 9, "", "3 to 9"},
		{3, 3, "", "3"},
	} {
		if got := temporal.Stretch(c.from, c.to, c.unit); got != c.want {
			t.Errorf("from %d to %d %s: %q, want %q", c.from, c.to, c.unit, got, c.want)
		}
	}
}
