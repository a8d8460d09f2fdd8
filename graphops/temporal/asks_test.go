package temporal

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Questions and answers are those of a reference that looks at every event for every node and moment.
func TestQuestionsAreThoseOfTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const nodes, n = 6, 80
	var src, dst []int32
	var time []int64
	var values []float32
	at := int64(-20)
	for range n {
		at += r.Int64N(3)
		src, dst, time, values = append(src, r.Int32N(nodes-1)), append(dst, r.Int32N(nodes-1)), append(time, at), append(values, float32(r.IntN(9)-4))
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{AskCount, AskAny, AskSum, AskMean} {
		for _, who := range []string{AsSource, AsDestination, AsEither} {
			for _, active := range []int64{0, 9} {
				a := Ask{What: what, Who: who, Window: 5, Every: 4, Active: active, Values: values}
				if err := a.Check(n); err != nil {
					t.Fatal(err)
				}
				q, err := a.Questions(e)
				if err != nil {
					t.Fatal(err)
				}
				i := 0
				for moment := int64(-100); moment <= time[n-1]; moment++ {
					if moment < time[0] || moment%4 != 0 {
						continue
					}
					for v := range int32(nodes) {
						known, count, sum := false, 0, 0.0
						for k := range n {
							own := who != AsDestination && src[k] == v || who != AsSource && dst[k] == v
							known = known || own && time[k] <= moment && (active == 0 || time[k] > moment-active)
							if own && time[k] > moment && time[k] <= moment+5 {
								count, sum = count+1, sum+float64(values[k])
							}
						}
						if !known {
							continue
						}
						want := map[string]float64{AskCount: float64(count), AskAny: float64(min(count, 1)), AskSum: sum, AskMean: sum / float64(count)}[what]
						if i >= len(q.Nodes) || q.Nodes[i] != v || q.Times[i] != moment {
							t.Fatalf("%s of %s: question %d is not about node %d at time %d", what, who, i, v, moment)
						}
						if got := q.Targets[i]; got != float32(want) && !(math.IsNaN(want) && got != got) {
							t.Fatalf("%s of %s: the answer about node %d at time %d is %v, want %v", what, who, v, moment, got, want)
						}
						i++
					}
				}
				if i != len(q.Nodes) || i == 0 {
					t.Fatalf("%s of %s: %d questions, want %d", what, who, len(q.Nodes), i)
				}
			}
		}
	}
}

// Times at the ends of what an int64 holds neither hang nor overflow.
func TestQuestionsAtTheEndsOfTime(t *testing.T) {
	for _, time := range [][]int64{{math.MinInt64, math.MaxInt64}, {math.MaxInt64 - 5, math.MaxInt64}, {math.MinInt64 + 1, math.MinInt64 + 9}} {
		e, err := New(2, []int32{0, 1}, []int32{1, 0}, time)
		if err != nil {
			t.Fatal(err)
		}
		a := Ask{What: AskCount, Who: AsEither, Window: 1 << 61, Every: 3}
		q, err := a.Questions(e)
		if wide := time[0] < 0 && time[1] > 0; wide != (err != nil) {
			t.Errorf("times %v: %v", time, err)
		}
		if err == nil && len(q.Nodes) == 0 {
			t.Errorf("times %v: no questions", time)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       int64
	}{
		{"7d", "s", 604800},
		{"1w", "s", 604800},
		{"90m", "s", 5400},
		{"1.5h", "ms", 5400000},
		{"250ms", "us", 250000},
		{"12", "", 12},
		{"12", "s", 12},
		{"1d", "ns", 86400e9},
		{"1.1h", "s", 3960},
		{"2.3h", "s", 8280},
		{"0.07h", "s", 252},
		{"0.000001s", "us", 1},
		{".5m", "s", 30},
		{"+1.d", "s", 86400},
		{"1.00000000000000000001h", "s", 0},
		{"0." + strings.Repeat("0", 1000) + "1h", "s", 0},
		{"1/2h", "s", 0},
		{"0x1h", "s", 0},
		{"1_0h", "s", 0},
		{"0d", "s", 0},
		{"-1d", "s", 0},
		{"7d", "", 0},
		{"1.5s", "s", 0},
		{"1ns", "s", 0},
		{"1y", "s", 0},
		{"d", "s", 0},
		{"", "s", 0},
		{"nan", "s", 0},
		{"1e3s", "s", 0},
		{"2.5", "", 0},
		{"99999999999999999999", "", 0},
		{"99999999999999999999w", "s", 0},
	} {
		got, err := ParseSpan(c.text, c.unit)
		if got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%q in %q is %d, %v; want %d", c.text, c.unit, got, err, c.want)
		}
		if err != nil {
			continue
		}
		if again, err := ParseSpan(SpanText(got, c.unit), c.unit); again != got || err != nil {
			t.Errorf("%d in %q is written %q, which is read as %d, %v", got, c.unit, SpanText(got, c.unit), again, err)
		}
	}
}
