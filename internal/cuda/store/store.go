package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
)

// Data is a dataset in the host's memory. Missing parts are not placed.
type Data struct {
	Graph    *graphops.Graph
	Features tensor.Table // [nodes, Cols]
	Cols     int
	// Mapped says that the arrays are in mapped files; see [FeatureOptions].
	Mapped bool
	// Resident says that these are memory files, whose pages are in memory already.
	Resident bool
}

// Options choose the places. The zero value decides by the free memory.
type Options struct {
	Graph, Features Place
	CacheBytes      int64 // see [FeatureOptions]; 0 means all memory free for data
	Host            *Host // see [FeatureOptions]
}

// Store is a dataset placed for a device. Parts that the data lacks are nil.
type Store struct {
	Graph    *Graph
	Features *Features

	d *cuda.Device
}

// Open places a dataset for a device. Close frees the memory.
func Open(d *cuda.Device, x Data, o Options) (*Store, error) {
	s := &Store{d: d}
	fail := func(err error) (*Store, error) { return nil, errors.Join(err, s.Close()) }
	var err error
	if x.Graph != nil {
		if s.Graph, err = putGraph(d, x.Graph, o.Graph, mapping{x.Mapped, x.Resident, o.Host}); err != nil {
			return fail(err)
		}
	}
	if x.Cols > 0 {
		s.Features, err = PutFeatures(d, x.Features, max(len(x.Features.F32), len(x.Features.F16))/x.Cols, x.Cols,
			FeatureOptions{Place: o.Features, Graph: x.Graph, CacheBytes: o.CacheBytes, Mapped: x.Mapped, Resident: x.Resident, Host: o.Host})
		if err != nil {
			return fail(err)
		}
	}
	return s, nil
}

// String describes the places, for people.
func (s *Store) String() string {
	var parts []string
	if s.Graph != nil {
		parts = append(parts, s.Graph.String())
	}
	if s.Features != nil {
		parts = append(parts, s.Features.String())
	}
	m, held := s.d.Memory(), int64(0)
	for _, n := range m.Held {
		held += n
	}
	return fmt.Sprintf("%s; %s of %s of device memory are left for batches", strings.Join(parts, "; "), phrase.Bytes(m.Limit-held), phrase.Bytes(m.Limit))
}

// Close frees the memory of all parts.
func (s *Store) Close() error {
	var errs []error
	if s.Features != nil {
		errs = append(errs, s.Features.Close())
	}
	if s.Graph != nil {
		errs = append(errs, s.Graph.Close())
	}
	return errors.Join(errs...)
}
