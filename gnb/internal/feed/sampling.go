package feed

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// The values of gnb.TrainOptions.Sampler.
const (
	Uniform      = "uniform"
	Labor        = "labor"
	PoissonLabor = "labor-poisson"
	Budget       = "hgt" // of package gnb/budget
)

// Declared are the samplers that the program declares (gnb.DeclareSampler).
var Declared = entry.Values{Registry: entry.Registry[func() any]{Kind: "sampler"}, How: "gnb.DeclareSampler"}

// Named is a declared sampler that options of training choose by its name.
type Named interface {
	sample.Picker
	// OfFanouts returns the sampler for the option Fanouts.
	OfFanouts(fanouts []int) sample.Picker
	// DefaultFanout is the fanout of each hop unless the option is given.
	DefaultFanout() int
}

// Sampling is the choice of a sampler, as gnb.TrainOptions has it; the zero value is uniform sampling. It is a part of
// programs' arguments.
type Sampling struct {
	Sampler         string `json:",omitempty"`
	BatchDependency int    `json:",omitempty"`
	LayerDependency bool   `json:",omitempty"`
	// Relations are the fanouts of relations, by number, that differ from those of the others.
	Relations map[int]sample.Fanouts `json:",omitempty"`
}

// ByRelation returns the choice with fanouts of the relations of a dataset with the schema s, nil without types, where
// fanouts are those of the other relations.
func (s Sampling) ByRelation(schema *graphops.Schema, fanouts []int, by map[string][]int) (Sampling, error) {
	if len(by) == 0 {
		return s, nil
	}
	named := map[string]sample.Fanouts{}
	for name, list := range by {
		named[name] = list
	}
	if n, err := s.named(); err != nil || n != nil {
		return s, cmp.Or(err, fmt.Errorf("gnb: RelationFanouts are for uniform and layer-neighbour sampling; leave them out, or choose another Sampler than %q", s.Sampler))
	}
	if schema == nil {
		return s, errors.New("gnb: RelationFanouts are for datasets with types of edges, and this one has none; leave them out")
	}
	p, err := sample.NewRelationFanouts(schema, fanouts, named)
	if err != nil {
		return s, fmt.Errorf("gnb: RelationFanouts: %w", err)
	}
	s.Relations = p.By
	return s, nil
}

// RelationFanouts returns what [Sampling.ByRelation] got.
func (s Sampling) RelationFanouts(schema *graphops.Schema) map[string][]int {
	if schema == nil || len(s.Relations) == 0 {
		return nil
	}
	by := map[string][]int{}
	for r, list := range s.Relations {
		if r >= 0 && r < len(schema.Relations) {
			by[schema.Relations[r].String()] = list
		}
	}
	return by
}

// Normal returns the choice in the form that programs' arguments have, in which equal choices are equal values. It fails if the
// choice is invalid.
func (s Sampling) Normal() (Sampling, error) {
	if s.BatchDependency == 1 {
		s.BatchDependency = 0
	}
	switch s.Sampler {
	case "", Uniform:
		s.Sampler = ""
		switch {
		case s.BatchDependency != 0:
			return s, fmt.Errorf("gnb: BatchDependency is %d, but uniform sampling draws anew at each step; set Sampler to %q, or leave it out", s.BatchDependency, Labor)
		case s.LayerDependency:
			return s, fmt.Errorf("gnb: LayerDependency is set, but uniform sampling draws anew at each hop; set Sampler to %q, or leave it out", Labor)
		}
	case Labor, PoissonLabor:
		if n := s.BatchDependency; n < 0 || n > sample.MaxBatchDependency {
			return s, fmt.Errorf("gnb: BatchDependency is %d; it is a number of steps, 1 to %d, or 0 for the default", n, sample.MaxBatchDependency)
		}
	default:
		if _, err := s.named(); err != nil {
			return s, err
		}
		if s.BatchDependency != 0 || s.LayerDependency {
			return s, fmt.Errorf("gnb: BatchDependency and LayerDependency are for layer-neighbour sampling; leave them out, or set Sampler to %q instead of %q", Labor, s.Sampler)
		}
	}
	return s, nil
}

// named returns the declared sampler, nil for those of this package.
func (s Sampling) named() (Named, error) {
	switch s.Sampler {
	case "", Uniform, Labor, PoissonLabor:
		return nil, nil
	}
	build, err := Declared.Get(s.Sampler)
	var n Named
	ok := false
	if err == nil {
		n, ok = build().(Named)
	}
	switch {
	case s.Sampler == Budget && err != nil:
		return nil, fmt.Errorf("gnb: Sampler is %q, which package gnb/budget declares and this program does not import; add import _ \"github.com/graphnb/graphnb/gnb/budget\"", s.Sampler)
	case err != nil:
		return nil, fmt.Errorf("gnb: Sampler is %q; it is %q, %q, %q, %q or a sampler that the program declares (gnb.DeclareSampler)", s.Sampler, Uniform, Labor, PoissonLabor, Budget)
	case !ok:
		return nil, fmt.Errorf("gnb: Sampler is %q, of type %T, which has no methods OfFanouts and DefaultFanout, so options cannot choose it; use it in a loop of your own", s.Sampler, build())
	}
	return n, nil
}

// Fanout is the default fanout of each hop.
func (s Sampling) Fanout() int {
	if n, err := s.named(); err == nil && n != nil {
		return n.DefaultFanout()
	}
	return 10
}

// CheckSampled returns an error if an evaluation cannot sample by the fanouts uniformly.
func (s Sampling) CheckSampled() error {
	if n, err := s.named(); err != nil || n == nil {
		return err
	}
	return fmt.Errorf(`gnb: Eval is "sampled", which samples uniformly, and Fanouts are those of the Sampler %q; evaluate with all neighbours (Eval "full")`, s.Sampler)
}

// Picker returns the sampler for fanouts, or nil for uniform sampling.
func (s Sampling) Picker(fanouts []int) sample.Picker {
	if n, err := s.named(); err == nil && n != nil { // Normal has refused errors
		return n.OfFanouts(fanouts)
	}
	labor := sample.Labor{Fanouts: fanouts, BatchDependency: s.BatchDependency, LayerDependency: s.LayerDependency, Poisson: s.Sampler == PoissonLabor}
	switch {
	case len(s.Relations) > 0:
		p := &sample.RelationFanouts{All: fanouts, By: s.Relations}
		if s.Sampler != "" {
			labor.Fanouts = nil
			p.Labor = &labor
		}
		return p
	case s.Sampler == "":
		return nil
	}
	return labor
}
