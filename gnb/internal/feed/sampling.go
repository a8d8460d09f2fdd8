package feed

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/sample"
)

// The values of gnb.TrainOptions.Sampler.
const (
	Uniform      = "uniform"
	Labor        = "labor"
	PoissonLabor = "labor-poisson"
)

// Sampling is the choice of a sampler, as gnb.TrainOptions has it; the zero value is uniform sampling. It is a part of
// programs' arguments.
type Sampling struct {
	Sampler         string `json:",omitempty"`
	BatchDependency int    `json:",omitempty"`
	LayerDependency bool   `json:",omitempty"`
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
		return s, fmt.Errorf("gnb: Sampler is %q; it is %q, %q or %q", s.Sampler, Uniform, Labor, PoissonLabor)
	}
	return s, nil
}

// Picker returns the sampler for fanouts, or nil for uniform sampling.
func (s Sampling) Picker(fanouts []int) sample.Picker {
	if s.Sampler == "" {
		return nil
	}
	return sample.Labor{Fanouts: fanouts, BatchDependency: s.BatchDependency, LayerDependency: s.LayerDependency, Poisson: s.Sampler == PoissonLabor}
}
