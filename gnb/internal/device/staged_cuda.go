//go:build cuda && linux && cgo

package device

import (
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/store"
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
	if g.data == nil || g.data.Features == nil {
		return nil, nil
	}
	switch f := g.data.Features; f.Place {
	case store.Staged:
		s, err := f.Stager()
		if err != nil {
			return nil, err
		}
		return &featureStager{s, g.be}, nil
	case store.Pinned, store.Cached:
		s, err := f.Gatherer()
		if err != nil {
			return nil, err
		}
		return &gatherer{s, g.be}, nil
	}
	return nil, nil
}

// featureStager is the [Stager] of the feature store.
type featureStager struct {
	*store.Stager
	be *backend.Backend
}

func (s *featureStager) Prepare(stop <-chan struct{}, b *sample.Batch, _ []int32, _ *dataset.Matrix) (Batch, error) {
	r, err := s.Stager.Prepare(stop, b.InputIDs())
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

// gatherer is the [Stager] of features that kernels read in the host's memory.
type gatherer struct {
	*store.Gatherer
	be *backend.Backend
}

func (s *gatherer) Prepare(stop <-chan struct{}, b *sample.Batch, _ []int32, _ *dataset.Matrix) (Batch, error) {
	if len(b.Blocks) == 0 {
		return nil, nil
	}
	r, err := s.Gatherer.Prepare(stop, s.be, b.Blocks[0])
	if err != nil {
		return nil, err
	}
	return gatheredRows{r}, nil
}

// gatheredRows are rows that the device has gathered.
type gatheredRows struct{ *store.Gathered }

func (r gatheredRows) Input(*nn.Fwd, *nn.Space) *nn.Tensor {
	r.Use()
	return nil
}

func (gatheredRows) Features() []float32 { return nil }

// feeder is the [Stager] of batches that the host gathers.
type feeder struct {
	*store.Feeder
	be *backend.Backend
}

func (s *feeder) Prepare(stop <-chan struct{}, _ *sample.Batch, places []int32, rest *dataset.Matrix) (Batch, error) {
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
