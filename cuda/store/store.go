package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/internal/units"

	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/kernels"
	"github.com/graphnb/graphnb/graphops"
)

// Data is a dataset in the host's memory. What is missing is left out.
type Data struct {
	Graph    *graphops.Graph
	Features []float32 // [nodes, Cols]
	Cols     int
	Labels   []int32 // [nodes]
	// Mapped says that the arrays are of mapped files; see [FeatureOptions].
	Mapped bool
	// Resident says so of memory files, whose pages are in memory anyway.
	Resident bool
}

// Options say what lies where. The zero value decides by the memory that is free.
type Options struct {
	Graph, Features, Labels Place
	Half                    bool  // see [FeatureOptions]
	CacheBytes              int64 // see [FeatureOptions]
	Host                    *Host // see [FeatureOptions]
}

// Store is a dataset for a device. Parts that the data lacks are nil.
type Store struct {
	Graph    *Graph
	Features *Features
	Labels   *Labels

	d *cuda.Device
}

// Open puts a dataset for a device. Close gives the memory back.
func Open(d *cuda.Device, x Data, o Options) (*Store, error) {
	s := &Store{d: d}
	fail := func(err error) (*Store, error) { return nil, errors.Join(err, s.Close()) }
	var err error
	if x.Labels != nil {
		if s.Labels, err = putLabels(d, x.Labels, o.Labels, o.Host); err != nil {
			return fail(err)
		}
	}
	if x.Graph != nil {
		if s.Graph, err = putGraph(d, x.Graph, o.Graph, mapping{x.Mapped, x.Resident, o.Host}); err != nil {
			return fail(err)
		}
	}
	if x.Cols > 0 {
		s.Features, err = PutFeatures(d, x.Features, len(x.Features)/x.Cols, x.Cols,
			FeatureOptions{Place: o.Features, Half: o.Half, Graph: x.Graph, CacheBytes: o.CacheBytes, Mapped: x.Mapped, Resident: x.Resident, Host: o.Host})
		if err != nil {
			return fail(err)
		}
	}
	return s, nil
}

// String says what lies where, for people.
func (s *Store) String() string {
	var parts []string
	if s.Graph != nil {
		parts = append(parts, s.Graph.String())
	}
	if s.Features != nil {
		parts = append(parts, s.Features.String())
	}
	if s.Labels != nil {
		parts = append(parts, fmt.Sprintf("labels %s", s.Labels.Place))
	}
	m, held := s.d.Memory(), int64(0)
	for _, n := range m.Held {
		held += n
	}
	return fmt.Sprintf("%s; %s of %s of device memory are left for batches", strings.Join(parts, "; "), units.Bytes(m.Limit-held), units.Bytes(m.Limit))
}

// Close gives the memory of all parts back.
func (s *Store) Close() error {
	var errs []error
	if s.Features != nil {
		errs = append(errs, s.Features.Close())
	}
	if s.Graph != nil {
		errs = append(errs, s.Graph.Close())
	}
	if s.Labels != nil {
		errs = append(errs, s.Labels.Close())
	}
	return errors.Join(errs...)
}

// Labels are a number for each node, where a device's kernels read them.
type Labels struct {
	Place Place

	a *array // nil where there are none
}

// PutLabels puts labels at a place: Device, Pinned or Auto, which is Device where
// there is room.
func PutLabels(d *cuda.Device, labels []int32, place Place) (*Labels, error) {
	return putLabels(d, labels, place, nil)
}

func putLabels(d *cuda.Device, labels []int32, place Place, h *Host) (*Labels, error) {
	l := &Labels{}
	var err error
	l.Place, err = putAll(d, "labels lie", place, 4*int64(len(labels)), func(at Place) (err error) {
		if len(labels) > 0 {
			l.a, err = put(d, cuda.Features, bytesOf(labels), at, mapping{host: h})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Gather writes the labels of n nodes, whose ids lie on the device, to out i32 [n] in
// the order of a stream.
func (l *Labels) Gather(s *cuda.Stream, out, ids cuda.Ptr, n int) {
	if n == 0 || l.a == nil {
		return
	}
	// Rows of one number, which the kernel copies bit by bit.
	shape := kernels.Tiled(n, 1, 1)
	s.Launch("gather_f32", cuda.Dim{X: shape.Grid}, cuda.Dim{X: shape.X, Y: shape.Y}, 0, out, l.a.ptr, cuda.Ptr(0), cuda.Ptr(0), ids, n, 1)
}

// Close gives the memory back.
func (l *Labels) Close() error {
	if l.a == nil {
		return nil
	}
	a := l.a
	l.a = nil
	return a.close()
}
