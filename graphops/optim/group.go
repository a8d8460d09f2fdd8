package optim

import (
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
)

// Group gives some of a model's parameters a learning rate and a weight decay of their own, as a parameter group of
// torch.optim does.
type Group struct {
	// Match is the name of a module or parameter, such as "convs.0" or "convs.0.bias", or a pattern of names, such as
	// "*.bias", in which * stands for any text and ? for a character.
	Match string
	// LR is the learning rate; 0 means the optimiser's, and [None] 0, which leaves the parameters as they are. When the
	// optimiser's rate changes, by a schedule for instance, the group's changes by the same factor.
	LR float64 `json:",omitempty"`
	// WeightDecay is the weight decay; 0 means the optimiser's, and [None] none.
	WeightDecay float64 `json:",omitempty"`
}

// has reports whether a parameter is in the group.
func (g Group) has(name string) bool {
	if name == g.Match || strings.HasPrefix(name, g.Match+".") {
		return true
	}
	ok, _ := path.Match(g.Match, name) // names have no slash
	return ok
}

// Check returns an error, a sentence, for a group without meaning in an optimiser with the learning rate lr.
func (g Group) Check(lr float64) error {
	if _, err := path.Match(g.Match, ""); err != nil || g.Match == "" {
		return phrase.Errorf("optim", "a group's Match is %q; it is the name of a module or parameter, such as convs.0, or a pattern, such as *.bias", g.Match)
	}
	for name, v := range map[string]float64{"LR": g.LR, "WeightDecay": g.WeightDecay} {
		if v != None && !(v >= 0 && v <= math.MaxFloat32) {
			return phrase.Errorf("optim", "the %s of group %q is %v; it is a number of at least 0 (0 means the optimiser's, and None 0)", name, g.Match, v)
		}
	}
	if g.LR > 0 && lr == 0 {
		return phrase.Errorf("optim", "group %q has the LR %v, but the optimiser's is 0, from which no schedule leads to it; give the optimiser a rate, and the other parameters a group", g.Match, g.LR)
	}
	return nil
}

// String is the form that [ParseGroup] reads.
func (g Group) String() string {
	var parts []string
	for _, x := range []struct {
		name string
		v    float64
	}{{"lr", g.LR}, {"decay", g.WeightDecay}} {
		if x.v != 0 {
			parts = append(parts, x.name+"="+strconv.FormatFloat(max(x.v, 0), 'g', -1, 64))
		}
	}
	return g.Match + ":" + strings.Join(parts, ",")
}

// ParseGroup reads a group such as "convs.0:lr=0.001,decay=0" or "*.bias:decay=0", where 0 means zero.
func ParseGroup(s string) (Group, error) {
	match, settings, ok := strings.Cut(s, ":")
	g := Group{Match: match}
	for setting := range strings.SplitSeq(settings, ",") {
		name, text, _ := strings.Cut(setting, "=")
		v, err := strconv.ParseFloat(text, 64)
		to := map[string]*float64{"lr": &g.LR, "decay": &g.WeightDecay}[name]
		if !ok || err != nil || to == nil || v < 0 {
			return g, phrase.Errorf("optim", "the group %q is not NAME:lr=RATE,decay=RATE, such as convs.0:lr=0.001 or *.bias:decay=0", s)
		}
		if *to = v; v == 0 {
			*to = None
		}
	}
	return g, g.Check(1)
}

var _ Optimizer = (*Grouped)(nil)

// Grouped is an optimiser, an [Adam] or [SGD], some of whose parameters have a learning rate and a weight decay of their own.
// It steps in host memory.
type Grouped struct {
	Optimizer
	of     spanStepper
	groups []Group
	base   float64 // the rate at which the groups have theirs
	spans  []span
}

// spanStepper steps ranges of a flat buffer with their own settings.
type spanStepper interface {
	stepSpans(w, g []float32, scale float32, spans []span)
}

// span is a range of the flat buffer: its rate is factor times the optimiser's, and its decay the optimiser's if own is not
// set.
type span struct {
	lo, hi int
	factor float64
	decay  float64
	own    bool
}

// NewGrouped returns an optimiser with groups; a parameter belongs to the first one that matches its name. Before its first
// step, [Bind] must give it the parameters. It panics with a [*tensor.Error] for an invalid group.
func NewGrouped(o Optimizer, groups ...Group) *Grouped {
	of, ok := o.(spanStepper)
	if !ok {
		fail("NewGrouped", "%T has no groups; take an Adam or an SGD", o)
	}
	for _, g := range groups {
		if err := g.Check(o.LR()); err != nil {
			fail("NewGrouped", "%v", err)
		}
	}
	return &Grouped{Optimizer: o, of: of, groups: groups, base: o.LR()}
}

// Bind tells an optimiser with groups which parameters its flat buffers hold, by their names and sizes, in order. It does
// nothing for other optimisers. It fails if a group matches none.
func Bind(o Optimizer, names []string, sizes []int) error {
	if a, ok := o.(*Averaged); ok {
		o = a.Optimizer
	}
	if g, ok := o.(*Grouped); ok {
		return g.bind(names, sizes)
	}
	return nil
}

func (o *Grouped) bind(names []string, sizes []int) error {
	used, at := make([]bool, len(o.groups)), 0
	o.spans = nil
	for i, name := range names {
		s := span{lo: at, hi: at + sizes[i], factor: 1}
		at = s.hi
		for k, g := range o.groups {
			if !g.has(name) {
				continue
			}
			used[k] = true
			if g.LR != 0 && o.base > 0 {
				s.factor = max(g.LR, 0) / o.base
			}
			s.decay, s.own = max(g.WeightDecay, 0), g.WeightDecay != 0
			break
		}
		if last := len(o.spans) - 1; last >= 0 && o.spans[last].factor == s.factor && o.spans[last].decay == s.decay && o.spans[last].own == s.own {
			o.spans[last].hi = s.hi
			continue
		}
		o.spans = append(o.spans, s)
	}
	for k, g := range o.groups {
		if !used[k] {
			return phrase.Errorf("optim", "group %q matches no parameter that no group before it has; the parameters are %s", g.Match, strings.Join(names, ", "))
		}
	}
	return nil
}

// Step implements [Optimizer].
func (o *Grouped) Step(w, g []float32, scale float32) {
	if o.spans == nil && len(w) > 0 {
		fail("Grouped", "it does not know its parameters; call Bind before the first step")
	}
	if n := len(o.spans); n > 0 && o.spans[n-1].hi != len(w) {
		fail("Grouped", "it is bound to parameters of %d weights, and the buffer has %d", o.spans[n-1].hi, len(w))
	}
	o.of.stepSpans(w, g, scale, o.spans)
}

func (s span) with(decay float64) float64 {
	if s.own {
		return s.decay
	}
	return decay
}

func (a *Adam) stepSpans(w, g []float32, scale float32, spans []span) {
	checkStep(a.Name(), w, g, &a.m, &a.v)
	a.steps++
	for _, s := range spans {
		step := simd.AdamStep(a.coefficients(scale, a.o.LR*s.factor, s.with(a.o.WeightDecay)))
		parallel.For(0, s.hi-s.lo, stepGrain, func(lo, hi int) {
			lo, hi = s.lo+lo, s.lo+hi
			simd.Adam(w[lo:hi], a.m[lo:hi], a.v[lo:hi], g[lo:hi], &step)
		})
	}
}

func (s *SGD) stepSpans(w, g []float32, scale float32, spans []span) {
	s.checkBuffers(w, g)
	s.steps++
	for _, p := range spans {
		n := s.coefficients(scale, s.o.LR*p.factor, p.with(s.o.WeightDecay))
		parallel.For(0, p.hi-p.lo, stepGrain, func(lo, hi int) { s.update(w, g, p.lo+lo, p.lo+hi, n) })
	}
}
