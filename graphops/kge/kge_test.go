package kge

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

func random(n, entities, relations int, seed uint64) Triples {
	r := rand.New(rand.NewPCG(seed, 0))
	var t Triples
	for range n {
		t = t.Append(int32(r.IntN(entities)), int32(r.IntN(relations)), int32(r.IntN(entities)))
	}
	return t
}

func TestTriples(t *testing.T) {
	a := random(5, 4, 2, 1)
	if err := a.Check(4, 2); err != nil {
		t.Error(err)
	}
	both := Reciprocal(a, 2)
	if both.Len() != 10 || both.Head[7] != a.Tail[2] || both.Tail[7] != a.Head[2] || both.Rel[7] != a.Rel[2]+2 {
		t.Errorf("the reverse of triple 2 of %v is not in %v", a, both)
	}
	if err := both.Check(4, 4); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		t    Triples
		want string
	}{
		{Triples{[]int32{1}, []int32{0}, nil}, "no triples"},
		{Triples{[]int32{4}, []int32{0}, []int32{0}}, "entity 4"},
		{Triples{[]int32{0}, []int32{0}, []int32{-1}}, "entity -1"},
		{Triples{[]int32{0}, []int32{2}, []int32{0}}, "relation 2"},
	} {
		if err := c.t.Check(4, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want it to say %q", c.t, err, c.want)
		}
	}
}

// Queries have the answers that a map of sets has, and nothing else.
func TestQueries(t *testing.T) {
	for _, n := range []int{0, 1, 7, 200} {
		a := random(n, 6, 3, uint64(n))
		want := map[[2]int32][]int32{}
		for i := range a.Head {
			k := [2]int32{a.Head[i], a.Rel[i]}
			if !slices.Contains(want[k], a.Tail[i]) {
				want[k] = append(want[k], a.Tail[i])
			}
		}
		q := NewQueries(a)
		if q.Len() != len(want) {
			t.Fatalf("%d triples have %d queries, want %d", n, q.Len(), len(want))
		}
		for h := range int32(7) {
			for r := range int32(4) {
				w := want[[2]int32{h, r}]
				slices.Sort(w)
				if got := q.Answers(h, r); !slices.Equal(got, w) {
					t.Errorf("query (%d,%d) has the answers %v, want %v", h, r, got, w)
				}
			}
		}
		for i := range q.Len() {
			if i > 0 && (q.Head[i] < q.Head[i-1] || q.Head[i] == q.Head[i-1] && q.Rel[i] <= q.Rel[i-1]) {
				t.Errorf("query %d is not above query %d", i, i-1)
			}
		}
	}
}

// The rank is that of a list sorted by score from which the known answers are taken out, a tie at its mean.
func TestRank(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for range 300 {
		n := 1 + r.IntN(8)
		scores, all := make([]float32, n), make([]int32, n)
		for i := range scores {
			scores[i], all[i] = float32(r.IntN(4)), int32(i)
		}
		target := int32(r.IntN(n))
		known := slices.DeleteFunc(slices.Clone(all), func(int32) bool { return r.IntN(2) == 0 })
		sum, ranks := 0.0, 0
		left := slices.DeleteFunc(slices.Clone(all), func(v int32) bool { return v != target && slices.Contains(known, v) })
		slices.SortFunc(left, func(a, b int32) int { return int(scores[b] - scores[a]) })
		for i, v := range left {
			if scores[v] == scores[target] {
				sum, ranks = sum+float64(i+1), ranks+1
			}
		}
		if got, want := Rank(scores, target, known), sum/float64(ranks); got != want {
			t.Fatalf("the rank of %d by %v without %v is %v, want %v", target, scores, known, got, want)
		}
	}
	nan := float32(math.NaN())
	if got := Rank([]float32{1, nan}, 0, nil); got == got {
		t.Errorf("a rank among scores that are NaN is %v", got)
	}
	if got := Rank([]float32{1, nan}, 0, []int32{1}); got != 1 {
		t.Errorf("a known answer's NaN makes the rank %v", got)
	}
	if got := Rank(make([]float32, 101), 5, nil); got != 51 {
		t.Errorf("equal scores of 101 entities give rank %v, want the mean, 51", got)
	}
}

func TestMetrics(t *testing.T) {
	m := Measure([]float64{1, 2, 4, 20})
	want := Metrics{4, (1 + 0.5 + 0.25 + 0.05) / 4, 6.75, 0.25, 0.5, 0.75}
	if math.Abs(m.MRR-want.MRR) > 1e-15 || m.MR != want.MR || m.Hits1 != want.Hits1 || m.Hits3 != want.Hits3 || m.Hits10 != want.Hits10 || m.N != 4 {
		t.Errorf("metrics %+v, want %+v", m, want)
	}
	for _, m := range []Metrics{Measure(nil), Measure([]float64{1, math.NaN()})} {
		if m.MRR == m.MRR || m.Hits1 == m.Hits1 || m.Hits10 == m.Hits10 || m.MR == m.MR {
			t.Errorf("metrics of no ranks or of NaN: %+v", m)
		}
	}
	a := Triples{[]int32{0, 1, 2}, []int32{4, 1, 4}, []int32{0, 0, 0}}
	rows, err := ByRelation(a, []float64{1, 2, 2}, []float64{4, 1, 1})
	if err != nil || len(rows) != 2 || rows[0].Rel != 1 || rows[1].Heads.MRR != 0.75 || rows[1].Tails.MRR != 0.625 || rows[1].Both.N != 4 {
		t.Errorf("by relation: %+v, %v", rows, err)
	}
	if got := Table(rows, []string{"a", "likes"}); !strings.Contains(got, "likes") || !strings.Contains(got, "4 ") {
		t.Errorf("the table is\n%s", got)
	}
	if _, err := ByRelation(a, nil, nil); err == nil {
		t.Error("ranks of another number of triples are accepted")
	}
}

func TestKvsAll(t *testing.T) {
	q := NewQueries(random(12, 5, 2, 2))
	ids := []int32{3, 0, 3}
	for _, smoothing := range []float64{0, 0.1} {
		gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
			l := KvsAll(x[0], q, ids, smoothing)
			want := 0.0
			for i, id := range ids {
				for j := range int32(5) {
					s, y := float64(x[0].Data()[i*5+int(j)]), smoothing/5
					if slices.Contains(q.Of(int(id)), j) {
						y += 1 - smoothing
					}
					p := 1 / (1 + math.Exp(-s))
					want -= y*math.Log(p) + (1-y)*math.Log(1-p)
				}
			}
			if got := float64(l.Sum.Data()[0]); math.Abs(got-want) > 1e-5*want || l.Weight != 15 {
				t.Fatalf("the loss is %v of weight %v, want %v", got, l.Weight, want)
			}
			return l.Sum
		}, gradcheck.Random(3, 5, 6))
	}
	f := nn.NewFwd(nn.Config{})
	x := f.Input(1, 5, []float32{1000, -1000, 0, 0, 0}, nil)
	if got := KvsAll(x, q, []int32{0}, 0).Sum.Data()[0]; math.IsNaN(float64(got)) || math.IsInf(float64(got), 0) {
		t.Errorf("the loss of large scores is %v", got)
	}
	for _, c := range []struct {
		cols      int
		ids       []int32
		smoothing float64
	}{{5, nil, 0}, {5, []int32{99}, 0}, {1, []int32{0}, 0}, {5, []int32{0}, 1}, {5, []int32{0}, math.NaN()}} {
		if err := nn.Try(func() { KvsAll(f.Input(1, c.cols, make([]float32, c.cols), nil), q, c.ids, c.smoothing) }); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// OneVsAll is the cross-entropy of one row for each triple, and N3 the sum of cubes.
func TestOneVsAll(t *testing.T) {
	q := NewQueries(random(12, 5, 2, 2))
	ids := []int32{3, 0, 3}
	gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		l := OneVsAll(x[0], q, ids)
		var rows, tails []int32
		for i, id := range ids {
			for _, tail := range q.Of(int(id)) {
				rows, tails = append(rows, int32(i)), append(tails, tail)
			}
		}
		want := nn.CrossEntropy(f.Gather(x[0], rows), tails)
		if a, b := l.Sum.Data()[0], want.Sum.Data()[0]; math.Abs(float64(a-b)) > 1e-5*float64(b) || l.Weight != want.Weight {
			t.Fatalf("the loss is %v of weight %v, want %v of %v", a, l.Weight, b, want.Weight)
		}
		return l.Sum
	}, gradcheck.Random(3, 5, 6))
	f := nn.NewFwd(nn.Config{})
	if got := OneVsAll(f.Input(1, 5, []float32{1000, -1000, 0, 0, 0}, nil), q, []int32{0}).Sum.Data()[0]; math.IsNaN(float64(got)) || math.IsInf(float64(got), 0) {
		t.Errorf("the loss of large scores is %v", got)
	}
	if err := nn.Try(func() { OneVsAll(f.Input(1, 5, make([]float32, 5), nil), q, []int32{99}) }); err == nil {
		t.Error("a query that is not there is accepted")
	}
}

func TestN3(t *testing.T) {
	w := []float32{1, 0, 2.5}
	for _, isComplex := range []bool{false, true} {
		gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
			got, want := N3(f, x[0], w, isComplex), 0.0
			for i := range 3 {
				for j := range 4 {
					v := float64(x[0].Data()[i*4+j])
					switch {
					case !isComplex:
						want += float64(w[i]) * math.Pow(math.Abs(v), 3)
					case j < 2:
						want += float64(w[i]) * math.Pow(math.Hypot(v, float64(x[0].Data()[i*4+j+2])), 3)
					}
				}
			}
			if g := float64(got.Data()[0]); math.Abs(g-want) > 1e-5*want {
				t.Fatalf("N3 is %v, want %v", g, want)
			}
			return got
		}, gradcheck.Random(3, 4, 6))
		f := nn.NewFwd(nn.Config{})
		if err := nn.Try(func() { N3(f, f.Input(1, 2, []float32{1, 2}, nil), w, isComplex) }); err == nil {
			t.Error("other weights than rows are accepted")
		}
	}
}

// Negatives replace the sides that they should, are no known triples if strict, and depend on the triple's
// number alone.
func TestNegatives(t *testing.T) {
	const entities, relations = 7, 2
	known := random(40, entities, relations, 9)
	for _, c := range []struct {
		o    NegativeOptions
		each int
	}{{NegativeOptions{}, 2}, {NegativeOptions{PerSide: 3, Strict: true, Seed: 4}, 6}, {NegativeOptions{PerSide: 2, Sides: TailSide}, 2}, {NegativeOptions{Sides: HeadSide, Strict: true}, 1}} {
		n, err := NewNegatives(known, entities, relations, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if n.PerTriple() != c.each {
			t.Fatalf("%+v: %d negatives for each triple, want %d", c.o, n.PerTriple(), c.each)
		}
		all, err := n.Draw(1, 2, nil, known)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Head {
			of := i / c.each
			head, tail := all.Head[i] != known.Head[of], all.Tail[i] != known.Tail[of]
			k := i % c.each
			tails := c.o.Sides == TailSide || c.o.Sides == BothSides && k < c.each/2
			if head == tail || tail != tails || all.Rel[i] != known.Rel[of] {
				t.Fatalf("%+v: negative %d of triple %d replaces head %t, tail %t", c.o, k, of, head, tail)
			}
			if c.o.Strict {
				for j := range known.Head {
					if known.Head[j] == all.Head[i] && known.Rel[j] == all.Rel[i] && known.Tail[j] == all.Tail[i] {
						t.Fatalf("%+v: negative %d is the known triple %d", c.o, i, j)
					}
				}
			}
		}
		part, err := n.Draw(1, 2, []int32{5, 6}, known.Slice(5, 7))
		if err != nil || !slices.Equal(part.Head, all.Head[5*c.each:7*c.each]) || !slices.Equal(part.Tail, all.Tail[5*c.each:7*c.each]) {
			t.Errorf("%+v: the negatives of triples 5 and 6 depend on their batch: %v", c.o, err)
		}
	}
	// Each entity that can be drawn is about equally frequent.
	n, err := NewNegatives(Triples{[]int32{0, 0}, []int32{0, 0}, []int32{2, 4}}, 6, 1, NegativeOptions{PerSide: 40000, Sides: TailSide, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := n.Draw(0, 0, nil, Triples{[]int32{0}, []int32{0}, []int32{3}})
	if err != nil {
		t.Fatal(err)
	}
	count := [6]int{}
	for _, v := range drawn.Tail {
		count[v]++
	}
	for v, c := range count {
		if want := map[int]int{0: 13333, 1: 13333, 5: 13333}[v]; math.Abs(float64(c-want)) > 500 { // 5 deviations
			t.Errorf("entity %d was drawn %d times, want about %d", v, c, want)
		}
	}
}

func TestHostileNegatives(t *testing.T) {
	full := Triples{[]int32{0, 0}, []int32{0, 0}, []int32{0, 1}}
	n, err := NewNegatives(full, 2, 1, NegativeOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Draw(0, 0, nil, full); err == nil || !strings.Contains(err.Error(), "no negative tail") {
		t.Errorf("negatives of a query that every entity answers: %v", err)
	}
	if _, err := n.Draw(0, 0, []int32{1}, full); err == nil {
		t.Error("a number for two triples is accepted")
	}
	if _, err := n.Draw(0, 0, nil, Triples{[]int32{2}, []int32{0}, []int32{0}}); err == nil {
		t.Error("an entity out of range is accepted")
	}
	for _, o := range []NegativeOptions{{PerSide: -1}, {PerSide: 1 << 30}, {Sides: 3}} {
		if _, err := NewNegatives(full, 2, 1, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := NewNegatives(Triples{}, 1, 1, NegativeOptions{}); err == nil {
		t.Error("negatives of one entity are accepted")
	}
}
