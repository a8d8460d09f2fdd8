//go:build cuda && linux && cgo

package device

import (
	"slices"

	"github.com/graphnb/graphnb/cuda/backend"
	"github.com/graphnb/graphnb/cuda/store"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Stay implements [feed.Device].
func (g *gpu) Stay(f *feed.Fetcher, score []float32) error { return f.Stay(score, g.fed) }

func (g *gpu) stager(fed bool) (Stager, error) {
	if fed {
		s, err := g.fed.Feeder()
		if err != nil {
			return nil, err
		}
		return &feeder{s, g.be}, nil
	}
	s, err := g.data.Features.Stager()
	if err != nil {
		return nil, err
	}
	return &featureStager{s, g.be}, nil
}

// featureStager is the [Stager] of the feature store.
type featureStager struct {
	*store.Stager
	be *backend.Backend
}

func (s *featureStager) Prepare(stop <-chan struct{}, ids, _ []int32, _ *dataset.Matrix) (Batch, error) {
	r, err := s.Stager.Prepare(stop, ids)
	if err != nil {
		return nil, err
	}
	return &featureRows{r, s.be}, nil
}

// featureRows are a batch's features on the device.
type featureRows struct {
	*store.Rows
	be *backend.Backend
}

func (r *featureRows) Input(*nn.Fwd, *nn.Space) *nn.Tensor {
	r.Use(r.be)
	return nil
}

func (*featureRows) Features() []float32 { return nil }

// feeder is the [Stager] of batches that the host gathers.
type feeder struct {
	*store.Feeder
	be *backend.Backend
}

func (s *feeder) Prepare(stop <-chan struct{}, _, places []int32, rest *dataset.Matrix) (Batch, error) {
	if len(places) == 0 {
		return nil, nil
	}
	r, err := s.Feeder.Prepare(stop, places, nn.Table{F32: rest.F32, F16: rest.F16})
	if err != nil {
		return nil, err
	}
	return &fedBatch{r, s.be}, nil
}

// fedBatch is a batch's features on the device, of which the host lacks those that stay there.
type fedBatch struct {
	*store.FedRows
	be *backend.Backend
}

func (b *fedBatch) Features() []float32 {
	f := nn.NewFwd(nn.Config{Backend: b.be})
	defer f.Close()
	return slices.Clone(b.Input(f, nil).Data())
}
