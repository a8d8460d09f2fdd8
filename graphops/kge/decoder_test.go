package kge

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// score is the formula of a decoder in float64.
func score(d Decoder, h, r, t []float32) float64 {
	c := func(x []float32, i, dim int) complex128 { return complex(float64(x[i]), float64(x[dim+i])) }
	sum := 0.0
	switch d := d.(type) {
	case DistMult:
		for i := range h {
			sum += float64(h[i]) * float64(r[i]) * float64(t[i])
		}
	case ComplEx:
		for i := range d.Dim {
			x := c(t, i, d.Dim)
			sum += real(c(h, i, d.Dim) * c(r, i, d.Dim) * complex(real(x), -imag(x)))
		}
	case TransE:
		norm := func(x []float64) float64 {
			n := 0.0
			for _, v := range x {
				n += math.Pow(math.Abs(v), float64(d.Norm))
			}
			return math.Pow(n, 1/float64(d.Norm))
		}
		unit := func(x []float32) []float64 {
			y := make([]float64, len(x))
			for i, v := range x {
				y[i] = float64(v)
			}
			n := norm(y)
			for i := range y {
				y[i] /= n
			}
			return y
		}
		x, y := unit(h), unit(t)
		for i := range x {
			x[i] += float64(r[i]) - y[i]
		}
		sum = -norm(x)
	case RotatE:
		for i := range d.Dim {
			x := c(h, i, d.Dim)*complex(math.Cos(float64(r[i])), math.Sin(float64(r[i]))) - c(t, i, d.Dim)
			sum += real(x)*real(x) + imag(x)*imag(x)
		}
		sum = d.Margin - math.Sqrt(sum)
	}
	return sum
}

// Each decoder has the scores of its formula, for triples and for queries with all entities, and gradients
// that agree with central differences.
func TestDecoders(t *testing.T) {
	const entities, relations, dim = 5, 2, 3
	heads, rels, tails := []int32{0, 1, 4, 2}, []int32{1, 0, 1, 1}, []int32{3, 1, 0, 2}
	for _, c := range []struct {
		name string
		o    Options
	}{{"distmult", Options{}}, {"complex", Options{}}, {"transe", Options{}}, {"transe", Options{Norm: 2}}, {"rotate", Options{}}, {"rotate", Options{Margin: 9}}} {
		d, err := NewDecoder(c.name, dim, c.o)
		if err != nil {
			t.Fatal(err)
		}
		ec, rc := d.Cols()
		for _, n := range []int{0, 4} {
			heads, rels, tails := heads[:n], rels[:n], tails[:n]
			for _, what := range []string{"score", "tails", "heads", "each"} {
				if _, ok := d.(QueryDecoder); what == "each" && !ok {
					continue
				}
				gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
					h, r, tl := f.Gather(x[0], heads), f.Gather(x[1], rels), f.Gather(x[0], tails)
					at := func(m *tensor.Tensor, i int32) []float32 { return m.Data()[int(i)*m.Cols():][:m.Cols()] }
					check := func(got float32, i int, head, tail int32) {
						want := score(d, at(x[0], head), at(x[1], rels[i]), at(x[0], tail))
						// Sums of a few products of numbers below about 4 in float32.
						if math.Abs(float64(got)-want) > 2e-5*(1+math.Abs(want)) {
							t.Fatalf("%s %+v, %s: triple %d has score %v, want %v", c.name, c.o, what, i, got, want)
						}
					}
					var s *tensor.Tensor
					switch what {
					case "score":
						s = d.Score(f, h, r, tl)
						for i, got := range s.Data() {
							check(got, i, heads[i], tails[i])
						}
					case "tails":
						s = d.Tails(f, h, r, x[0])
						for i := range heads {
							for j := range int32(entities) {
								check(s.Data()[i*entities+int(j)], i, heads[i], j)
							}
						}
					case "each": // the triple itself, and another tail
						var two []int32
						for _, tail := range tails {
							two = append(two, tail, (tail+2)%entities)
						}
						s = Each(f, d.(QueryDecoder).Query(f, h, r), x[0], two, 2)
						for i, got := range s.Data() {
							check(got, i/2, heads[i/2], two[i])
						}
						if s.Rows() != 2*n || s.Cols() != 1 {
							t.Fatalf("the scores of %d tails are [%d,%d]", 2*n, s.Rows(), s.Cols())
						}
						return s
					default:
						s = d.(HeadDecoder).Heads(f, r, tl, x[0])
						for i := range tails {
							for j := range int32(entities) {
								check(s.Data()[i*entities+int(j)], i, j, tails[i])
							}
						}
					}
					if want := map[string]int{"score": 1}[what]; s.Rows() != n || want != 0 && s.Cols() != want || want == 0 && s.Cols() != entities {
						t.Fatalf("%s, %s: the scores of %d triples are [%d,%d]", c.name, what, n, s.Rows(), s.Cols())
					}
					return s
				}, gradcheck.Random(entities, ec, 3), gradcheck.Random(relations, rc, 4))
			}
		}
	}
}

// conve is ConvE without dropout, in float64 and one triple at a time, with the batch statistics that bn
// applies to the numbers of a channel over all triples.
func conve(d *ConvE, h, r [][]float32) [][]float64 {
	bn := func(l *nn.BatchNorm, x [][]float64) { // x[row][channel]
		for c := range x[0] {
			mean, variance := 0.0, 0.0
			for _, row := range x {
				mean += row[c] / float64(len(x))
			}
			for _, row := range x {
				variance += (row[c] - mean) * (row[c] - mean) / float64(len(x))
			}
			for _, row := range x {
				row[c] = (row[c]-mean)/math.Sqrt(variance+l.Eps)*float64(l.Weight.W[c]) + float64(l.Bias.W[c])
			}
		}
	}
	relu := func(x [][]float64) {
		for _, row := range x {
			for i := range row {
				row[i] = max(row[i], 0)
			}
		}
	}
	channels := d.Filters.Weight.Rows
	var picture [][]float64
	for i := range h {
		for _, part := range [][]float32{h[i][:d.Dim], r[i]} {
			for _, v := range part {
				picture = append(picture, []float64{float64(v)})
			}
		}
	}
	bn(d.Picture, picture)
	var maps [][]float64
	for i := range h {
		for top := range 2*d.Height - 2 {
			for left := range d.Width - 2 {
				row := make([]float64, channels)
				for c := range row {
					row[c] = float64(d.Filters.Bias.W[c])
					for y := range 3 {
						for x := range 3 {
							row[c] += float64(d.Filters.Weight.W[c*9+y*3+x]) * picture[i*2*d.Dim+(top+y)*d.Width+left+x][0]
						}
					}
				}
				maps = append(maps, row)
			}
		}
	}
	bn(d.Maps, maps)
	relu(maps)
	places := d.places()
	var q [][]float64
	for i := range h {
		row := make([]float64, d.Dim)
		for c := range row {
			row[c] = float64(d.Linear.Bias.W[c])
			for p := range places {
				for k := range channels {
					row[c] += float64(d.Linear.Weight.W[c*places*channels+p*channels+k]) * maps[i*places+p][k]
				}
			}
		}
		q = append(q, row)
	}
	bn(d.Hidden, q)
	relu(q)
	return q
}

func TestConvE(t *testing.T) {
	const entities, relations, dim = 6, 2, 6
	made, err := NewDecoder("conve", dim, Options{Channels: 2, InputDropout: -1, FeatureDropout: -1, HiddenDropout: -1})
	if err != nil {
		t.Fatal(err)
	}
	d := made.(*ConvE)
	if d.Height != 2 || d.Width != 3 {
		t.Fatalf("a picture of %d columns is %d by %d", dim, d.Height, d.Width)
	}
	params, err := nn.Collect(&struct{ D Decoder }{d})
	if err != nil {
		t.Fatal(err)
	}
	params.Init(5)
	heads, rels, tails := []int32{0, 1, 4, 2, 5}, []int32{1, 0, 1, 1, 0}, []int32{3, 1, 0, 2, 5}
	in := []gradcheck.Input{gradcheck.Random(entities, dim+1, 3), gradcheck.Random(relations, dim, 4)}
	for _, e := range params.List() {
		if !strings.Contains(e.Name, "running") && !strings.Contains(e.Name, "num_batches") {
			in = append(in, gradcheck.Param(e.Param))
		}
	}
	rows := func(m *tensor.Tensor, ids []int32) (out [][]float32) {
		for _, i := range ids {
			out = append(out, m.Data()[int(i)*m.Cols():][:m.Cols()])
		}
		return out
	}
	// Batch norms of five rows have a large third derivative.
	gradcheck.Checker{Config: tensor.Config{Train: true}, Abs: 3e-3, Rel: 3e-2}.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		h, r := f.Gather(x[0], heads), f.Gather(x[1], rels)
		s := d.Tails(f, h, r, x[0])
		want := conve(d, rows(x[0], heads), rows(x[1], rels))
		for i := range heads {
			for j, e := range rows(x[0], []int32{0, 1, 2, 3, 4, 5}) {
				sum := float64(e[dim])
				for c, q := range want[i] {
					sum += q * float64(e[c])
				}
				if got := float64(s.Data()[i*entities+j]); math.Abs(got-sum) > 1e-4*(1+math.Abs(sum)) {
					t.Fatalf("query %d has score %v with entity %d, want %v", i, got, j, sum)
				}
			}
		}
		return s
	}, in...)
	f := nn.NewFwd(nn.Config{})
	var e, r []float32
	for i := range entities * (dim + 1) {
		e = append(e, float32(math.Sin(float64(i))))
	}
	for i := range relations * dim {
		r = append(r, float32(math.Cos(float64(i))))
	}
	x, y := f.Input(entities, dim+1, e, nil), f.Input(relations, dim, r, nil)
	one := d.Score(f, f.Gather(x, heads), f.Gather(y, rels), f.Gather(x, tails)).Data()
	all := d.Tails(f, f.Gather(x, heads), f.Gather(y, rels), x).Data()
	for i, tail := range tails {
		if got, want := one[i], all[i*entities+int(tail)]; math.Abs(float64(got-want)) > 1e-5 {
			t.Errorf("triple %d has score %v, and %v among all entities", i, got, want)
		}
	}
}

// In training ConvE drops out by the queries' numbers: the same query has the same mask whatever its place.
func TestConvEDropout(t *testing.T) {
	made, err := NewDecoder("conve", 12, Options{Channels: 2})
	if err != nil {
		t.Fatal(err)
	}
	d := made.(*ConvE)
	if d.Drops != [3]float64{0.2, 0.2, 0.3} {
		t.Fatalf("the dropouts are %v", d.Drops)
	}
	f := nn.NewFwd(nn.Config{Train: true, Seed: 1})
	h := f.Input(2, 13, make([]float32, 26), nil)
	r := f.Input(2, 12, make([]float32, 24), nil)
	if err := nn.Try(func() { d.Tails(f, h, r, h) }); err == nil || !strings.Contains(err.Error(), "space") {
		t.Errorf("dropout without a row space: %v", err)
	}
	h.SetSpace(&nn.Space{IDs: []int32{7, 3}})
	if err := nn.Try(func() { d.Tails(f, h, r, h) }); err != nil {
		t.Error(err)
	}
	// A map is dropped at all places of a picture, or at none.
	d.Drops[1] = 0.5
	const n, channels = 40, 2
	ones, ids := make([]float32, n*d.places()*channels), make([]int32, n)
	for i := range ones {
		ones[i] = 1
	}
	for i := range ids {
		ids[i] = int32(i)
	}
	y := d.dropMaps(f, f.Input(n*d.places(), channels, ones, nil), &nn.Space{IDs: ids}).Data()
	dropped := 0
	for i := range n {
		for c := range channels {
			first := y[i*d.places()*channels+c]
			if first == 0 {
				dropped++
			}
			for p := range d.places() {
				if got := y[(i*d.places()+p)*channels+c]; got != first || got != 0 && got != 2 {
					t.Fatalf("picture %d, map %d, place %d has %v, and place 0 %v; want 0 or 2 at all", i, c, p, got, first)
				}
			}
		}
	}
	if dropped < 20 || dropped > 60 { // of 80, of which half are expected
		t.Errorf("%d of 80 maps are dropped", dropped)
	}
}

func TestHostileDecoders(t *testing.T) {
	for _, c := range []struct {
		name string
		dim  int
		o    Options
		want string
	}{
		{"tucker", 4, Options{}, "there is no decoder"},
		{"distmult", 0, Options{}, "at least one"},
		{"transe", 4, Options{Norm: 3}, "norms 1 and 2"},
		{"rotate", 4, Options{Margin: math.NaN()}, "finite"},
		{"conve", 7, Options{}, "picture"},
		{"conve", 200, Options{Height: 3}, "picture"},
		{"conve", 200, Options{Height: 100}, "picture"},
		{"conve", 200, Options{HiddenDropout: 1}, "below 1"},
		{"conve", 200, Options{Channels: -1}, "negative"},
	} {
		if _, err := NewDecoder(c.name, c.dim, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d columns, %+v: %v; want it to say %q", c.name, c.dim, c.o, err, c.want)
		}
	}
	f := nn.NewFwd(nn.Config{})
	x, y := f.Input(2, 4, make([]float32, 8), nil), f.Input(3, 4, make([]float32, 12), nil)
	for _, tails := range [][]int32{{0}, {0, 3}, {0, -1}} {
		var wrong *tensor.Error
		if err := nn.Try(func() { Each(f, x, y, tails, 1) }); !errors.As(err, &wrong) {
			t.Errorf("tails %v of 2 queries among 3 entities: %v", tails, err)
		}
	}
	for _, name := range []string{"distmult", "complex", "transe", "rotate"} {
		d, err := NewDecoder(name, 2, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wrong *tensor.Error
		if err := nn.Try(func() { d.Score(f, x, y, x) }); !errors.As(err, &wrong) {
			t.Errorf("%s of 2 heads and 3 relations: %v", name, err)
		}
	}
}
