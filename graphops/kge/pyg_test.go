package kge

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
)

// Scores and gradients equal PyG's, and those of ConvE PyTorch's: see testdata/pyg.py.
func TestDecodersArePyG(t *testing.T) {
	raw, err := os.ReadFile("testdata/pyg.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Head, Rel, Tail []int32
		Cases           map[string]struct {
			Entities, Relations, DEntities, DRelations [][]float64
			Score                                      []float64
			Params                                     map[string][]float64
		}
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	if len(py.Cases) != 6 {
		t.Fatalf("pyg.json has %d cases, want 6; run scripts/fixtures.sh", len(py.Cases))
	}
	flat := func(rows [][]float64) (x []float32) {
		for _, row := range rows {
			for _, v := range row {
				x = append(x, float32(v))
			}
		}
		return x
	}
	near := func(t *testing.T, what string, got, want []float32) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
		}
		for i, w := range want {
			// Sums of a few products of numbers about 1 in float32, and batch norms of them.
			if !(math.Abs(float64(got[i]-w)) <= 1e-5*(1+math.Abs(float64(w)))) {
				t.Fatalf("%s: number %d is %v, PyG's is %v", what, i, got[i], w)
			}
		}
	}
	for name, c := range py.Cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Height: 2, Channels: 3, InputDropout: -1, FeatureDropout: -1, HiddenDropout: -1}
			if name == "rotate" {
				o.Margin = 6
			}
			kind, norm, _ := strings.Cut(name, " ")
			if norm == "2" {
				o.Norm = 2
			}
			d, err := NewDecoder(kind, 8, o)
			if err != nil {
				t.Fatal(err)
			}
			if c.Params != nil {
				p, err := nn.Collect(d)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range p.List() {
					want := c.Params[strings.Replace(e.Name, ".module.", ".", 1)] // PyG wraps batch norms
					if e.Fixed {                                                  // running statistics
						continue
					}
					if len(want) != len(e.W) {
						t.Fatalf("%s has %d numbers, PyTorch's has %d", e.Name, len(e.W), len(want))
					}
					copy(e.W, flat([][]float64{want}))
				}
			}
			f := nn.NewFwd(nn.Config{Train: true})
			entities := f.Leaf(len(c.Entities), len(c.Entities[0]), flat(c.Entities), nil)
			relations := f.Leaf(len(c.Relations), len(c.Relations[0]), flat(c.Relations), nil)
			s := d.Score(f, f.Gather(entities, py.Head), f.Gather(relations, py.Rel), f.Gather(entities, py.Tail))
			near(t, "score", s.Data(), flat([][]float64{c.Score}))
			by := make([]float32, len(py.Head))
			for i := range by {
				by[i] = (float32((i*37+5*11)%29) - 13.5) / 16
			}
			if err := f.SumAll(f.Mul(s, f.Input(len(by), 1, by, nil))).Backward(); err != nil {
				t.Fatal(err)
			}
			near(t, "gradient of the entities", entities.Grad(), flat(c.DEntities))
			near(t, "gradient of the relations", relations.Grad(), flat(c.DRelations))
		})
	}
}
