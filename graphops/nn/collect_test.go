package nn

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

type inner struct {
	Lin *Linear `nn:"fc"`
}

type base struct{ Enc *Linear }

type hidden struct{ *SAGEConv }

type allKinds struct {
	base              // embedded: not part of the name
	hidden            // embedded and unexported, and holds an embedded pointer
	W        *Param   // a parameter outside of a layer
	ByValue  Param    //
	Att      *Param   `nn:"att,vector"`
	Array    [2]inner // structs by value
	Any      any
	ByName   map[string]*Linear
	ByNumber map[int]inner
	ByByte   map[uint8]*Param
	NoLayers map[float64]any
	Off      *Linear   `nn:"-"`
	MaybeNil *Linear   `nn:"maybe,optional"`
	Skipped  *Fwd      // refers to parameters without owning them
	last     *Tensor   // also only a reference
	loop     *allKinds // a cycle of references
	Fn       func() *Linear
	Floats   []float32
	XMLNode2 []*Param
	private  int
}

func TestCollectKinds(t *testing.T) {
	t.Parallel()
	lin := func() *Linear { return NewLinear(2, 3, true) }
	m := &allKinds{
		base: base{Enc: lin()}, hidden: hidden{NewSAGEWith(2, 3, SAGEOptions{NoRoot: true, NoBias: true})},
		W: NewParam(2, 2), ByValue: Param{Rows: 1, Cols: 4}, Att: NewParam(1, 5),
		Array: [2]inner{{lin()}, {lin()}}, Any: &inner{lin()},
		ByName:   map[string]*Linear{"b": lin(), "a": NewLinear(1, 1, false)},
		ByNumber: map[int]inner{10: {NewLinear(1, 1, false)}, 9: {NewLinear(1, 1, false)}},
		Off:      lin(), XMLNode2: []*Param{NewParam(0, 3), NewParam(1, 1)}, private: 1,
		ByByte:   map[uint8]*Param{10: NewParam(1, 1), 9: NewParam(1, 1)},
		NoLayers: map[float64]any{1: "no layer"},
	}
	m.loop = m
	m.Skipped = NewFwd(Config{Grad: true})
	other := lin()
	mustCollect(t, other)
	m.last = m.Skipped.Param(other.Weight)
	p := mustCollect(t, m)
	want := []string{
		"enc.weight", "enc.bias", "lin_l.weight", "w", "by_value", "att",
		"array.0.fc.weight", "array.0.fc.bias", "array.1.fc.weight", "array.1.fc.bias",
		"any.fc.weight", "any.fc.bias", "by_name.a.weight", "by_name.b.weight", "by_name.b.bias",
		"by_number.9.fc.weight", "by_number.10.fc.weight", "by_byte.9", "by_byte.10", "xml_node2.0", "xml_node2.1",
	}
	if got := p.Names(); !slices.Equal(got, want) {
		t.Errorf("the names are\n%v, want\n%v", got, want)
	}
	for _, e := range p.List() {
		want := []int{e.Rows, e.Cols}
		if strings.HasSuffix(e.Name, "bias") || e.Name == "att" {
			want = []int{e.Rows * e.Cols}
		}
		if !slices.Equal(e.Shape(), want) {
			t.Errorf("%s has shape %v, want %v", e.Name, e.Shape(), want)
		}
	}
	if m.private != 1 || m.loop != m || m.last == nil || m.Off.Weight.Name != "" {
		t.Errorf("a skipped layer was named %q", m.Off.Weight.Name)
	}
	if &m.ByValue.W[0] != &p.Get("by_value").W[0] {
		t.Error("a parameter held by value differs from the collected one")
	}
}

// All views lie in the flat buffers, one after another, without overlap.
func TestCollectFlat(t *testing.T) {
	t.Parallel()
	m := NewSAGEModel(ModelConfig{In: 3, Hidden: 4, Out: 2, Layers: 2})
	m.Convs[1].LinL.Bias.W[1] = 42
	p := mustCollect(t, m)
	if p.Len() != 4*3+4+4*3+2*4+2+2*4 || len(p.Flat()) != p.Len() || len(p.Grad()) != p.Len() {
		t.Fatalf("%d weights", p.Len())
	}
	if m.Convs[1].LinL.Bias.W[1] != 42 {
		t.Error("Collect lost a weight")
	}
	grad := make([]float32, p.Len())
	p.SetGrad(grad)
	at := 0
	for _, e := range p.List() {
		for i := range e.W {
			p.Flat()[at], grad[at] = float32(at+1), float32(-at)
			if e.W[i] != float32(at+1) || e.G[i] != float32(-at) {
				t.Fatalf("element %d of %s is not element %d of the buffers", i, e.Name, at)
			}
			at++
		}
		if cap(e.W) != len(e.W) || cap(e.G) != len(e.G) {
			t.Errorf("appending to %s would write into the next parameter", e.Name)
		}
	}
	if at != p.Len() {
		t.Errorf("the parameters have %d elements, the buffer %d", at, p.Len())
	}
	p.ZeroGrad()
	if slices.Max(grad) != 0 || slices.Min(grad) != 0 {
		t.Error("ZeroGrad left something")
	}
	p.SetGrad(nil)
	if m.Convs[0].LinL.Weight.G != nil || p.Grad() != nil {
		t.Error("SetGrad(nil) left gradients on")
	}
	expect.Error(t, Try(func() { p.SetGrad(make([]float32, 3)) }), "3 elements")
}

func TestModelNames(t *testing.T) {
	t.Parallel()
	s := ModelConfig{In: 3, Hidden: 4, Out: 2, Layers: 2}
	// The state_dict of torch_geometric.nn.GraphSAGE(3, 4, 2, out_channels=2).
	want := []string{
		"convs.0.lin_l.weight", "convs.0.lin_l.bias", "convs.0.lin_r.weight",
		"convs.1.lin_l.weight", "convs.1.lin_l.bias", "convs.1.lin_r.weight",
	}
	if got := mustCollect(t, NewSAGEModel(s)).Names(); !slices.Equal(got, want) {
		t.Errorf("SAGE: %v", got)
	}
	want = []string{"lins.0.weight", "lins.0.bias", "lins.1.weight", "lins.1.bias"}
	if got := mustCollect(t, NewMLPModel(s)).Names(); !slices.Equal(got, want) {
		t.Errorf("MLP: %v", got)
	}
}

type tied struct {
	A, B *Linear
	Self *tied `nn:"self,optional"`
	View *Param
	last *Linear // refers to a layer that is collected elsewhere
}

func TestCollectShared(t *testing.T) {
	t.Parallel()
	m := &tied{A: NewLinear(2, 2, false)}
	m.B, m.Self, m.View, m.last = m.A, m, m.A.Weight, m.A
	p := mustCollect(t, m)
	if got := p.Names(); !slices.Equal(got, []string{"a.weight"}) {
		t.Errorf("the names are %v", got)
	}
	v := Value{[]int{2, 2}, []float32{1, 2, 3, 4}}
	all := map[string]Value{"a.weight": v, "b.weight": v, "view": v, "self.a.weight": v, "self.b.weight": v}
	if err := p.Load(all); err != nil || p.Flat()[3] != 4 {
		t.Errorf("loading all names of a shared parameter gives %v", err)
	}
	all["b.weight"] = Value{[]int{2, 2}, []float32{1, 2, 3, 5}}
	expect.Error(t, p.Load(all), "a.weight and b.weight are the same parameter")
	if m.last == nil {
		t.Error("lost")
	}
}

type unexported struct {
	Out   *Linear
	convs []*Linear
}

type unexportedAny struct {
	Out  *Linear
	deep struct{ m map[string]any }
}

type nilIn struct{ Layers []*Linear }

type clash struct {
	A *Linear `nn:"x"`
	B *Linear `nn:"x"`
}

type badTag struct {
	A *Param `nn:"a,vectr"`
}

type badVector struct {
	A *Param `nn:"a,vector"`
}

type badKey struct{ M map[float64]*Linear }

type badKeyAny struct {
	Lin *Linear
	M   map[[2]int]any
}

type holds struct{ W *Param }

type anyList struct{ L []any }

type list struct {
	Lin  *Linear
	Next *list
}

type byValue struct{ W Param }

func TestCollectErrors(t *testing.T) {
	t.Parallel()
	lin := NewLinear(1, 1, true)
	deep := &unexportedAny{Out: lin}
	deep.deep.m = map[string]any{"a": &inner{NewLinear(1, 1, true)}}
	for _, tc := range []struct {
		name  string
		model any
		parts []string
	}{
		{"nil", nil, []string{"the model is nil"}},
		{"nil pointer", (*SAGE)(nil), []string{"the model is nil"}},
		{"no struct", 3, []string{"int has no parameters"}},
		{"no parameters", &struct{ N int }{}, []string{"has no parameters", "exported"}},
		{"empty slice", &SAGE{}, []string{"*nn.SAGE has no parameters"}},
		{"nil layer", &inner{}, []string{"*nn.inner.Lin (a *nn.Linear) is nil", "optional"}},
		{"nil in slice", &nilIn{[]*Linear{lin, nil}}, []string{"*nn.nilIn.Layers[1] (a *nn.Linear) is nil"}},
		{"nil interface in slice", &anyList{[]any{lin, nil}}, []string{"L[1]", "is nil"}},
		{"nil weight", &Linear{}, []string{"*nn.Linear.Weight (a *tensor.Param) is nil"}},
		{"end of list", &list{Lin: lin}, []string{"Next (a *nn.list) is nil"}},
		{"unexported", &unexported{Out: lin, convs: []*Linear{NewLinear(1, 1, true)}}, []string{"*nn.unexported.convs", "not exported"}},
		{"unexported deep", deep, []string{"*nn.unexportedAny.deep", "not exported"}},
		{"same name", &clash{lin, NewLinear(1, 1, true)}, []string{"clash.A.Weight", "clash.B.Weight", `"x.weight"`}},
		{"unknown tag", &badTag{NewParam(1, 1)}, []string{"badTag.A", `"vectr"`}},
		{"no vector", &badVector{NewParam(2, 2)}, []string{"[2,2]", "vector"}},
		{"map key of any", &badKeyAny{lin, map[[2]int]any{{1, 2}: NewLinear(1, 1, true)}}, []string{"badKeyAny.M", "[2]int"}},
		{"map key", &badKey{map[float64]*Linear{1: lin}}, []string{"float64"}},
		{"wrong W", &holds{&Param{Rows: 2, Cols: 2, W: make([]float32, 3)}}, []string{"[2,2]", "3 elements"}},
		{"negative", &holds{&Param{Rows: -1, Cols: -1}}, []string{"[-1,-1]"}},
		{"copy", byValue{Param{Rows: 1, Cols: 1}}, []string{"byValue.W", "pointer to the model"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Collect(tc.model)
			expect.Error(t, err, append(tc.parts, "nn: Collect: ")...)
		})
	}
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"LinL": "lin_l", "W": "w", "W1": "w1", "HTTPServer": "http_server", "BatchNorm1": "batch_norm1",
		"Lin_L": "lin_l", "GRU": "gru", "Ärger": "ärger",
	} {
		if got := snakeCase(in); got != want {
			t.Errorf("snakeCase(%q) = %q, want %q", in, got, want)
		}
	}
}

// bare has no parameters, and says whether that is on purpose.
type bare bool

func (b bare) NoParams() bool { return bool(b) }

func TestCollectNoParams(t *testing.T) {
	t.Parallel()
	if p, err := Collect(bare(true)); err != nil || p.Len() != 0 {
		t.Errorf("a model without parameters on purpose gives %v", err)
	}
	_, err := Collect(bare(false))
	expect.Error(t, err, "has no parameters")
}
