package encode

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// laplacians writes the eigenvectors of each graph into the last columns of x.
func laplacians(ctx context.Context, g *graphops.Graph, offsets []int64, x []float32, cols int, o Options) error {
	var mu sync.Mutex
	var failed error
	failedAt := len(offsets)
	parallel.For(o.Threads, len(offsets)-1, 16, func(first, end int) {
		var s solver
		for i := first; i < end; i++ {
			if ctx.Err() != nil {
				return
			}
			lo, hi := offsets[i], offsets[i+1]
			if err := s.solve(g, lo, hi); err != nil {
				mu.Lock()
				if i < failedAt { // the error of the first graph, whatever the threads
					failed, failedAt = fmt.Errorf("encode: graph %d: %w", i, err), i
				}
				mu.Unlock()
				return
			}
			for k := range min(o.Laplacian, s.n-s.zeros) {
				column := s.zeros + k
				sign := s.sign(column)
				for j, v := range s.nodes {
					y := sign * s.z[j*s.n+column]
					if o.Absolute {
						y = math.Abs(y)
					}
					x[v*int64(cols)+int64(o.Steps+k)] = float32(y)
				}
			}
			if o.Progress != nil {
				o.Progress(int(hi - lo))
			}
		}
	})
	return failed
}

// solver computes the eigenvectors of one graph after another.
type solver struct {
	n     int       // nodes with edges
	nodes []int64   // these
	z     []float64 // [n, n] row-major: the matrix, and then its eigenvectors, one a column
	d, e  []float64 // eigenvalues, ascending
	zeros int       // eigenvalues that are 0: components

	place  []int32
	degree []float64
	parent []int32
}

func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	x = x[:n]
	clear(x)
	return x
}

// solve decomposes the Laplacian of the nodes lo to hi-1.
func (s *solver) solve(g *graphops.Graph, lo, hi int64) error {
	n := int(hi - lo)
	s.degree, s.place = room(s.degree, n), room(s.place, n)
	each := func(visit func(u, v int64, w float64)) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if u := int64(g.Indices[e]); u != v {
					visit(u-lo, v-lo, weight(g, e)/2)
				}
			}
		}
	}
	each(func(u, v int64, w float64) {
		s.degree[u] += w
		s.degree[v] += w
	})
	s.nodes = s.nodes[:0]
	for v, d := range s.degree {
		if d > 0 {
			s.place[v] = int32(len(s.nodes))
			s.nodes = append(s.nodes, lo+int64(v))
		}
	}
	s.n = len(s.nodes)
	s.z, s.d, s.e, s.parent = room(s.z, s.n*s.n), room(s.d, s.n), room(s.e, s.n), room(s.parent, s.n)
	for j := range s.n {
		s.z[j*s.n+j], s.parent[j] = 1, int32(j)
	}
	s.zeros = s.n
	each(func(u, v int64, w float64) {
		if w == 0 {
			return
		}
		a, b := s.place[u], s.place[v]
		off := w / (math.Sqrt(s.degree[u]) * math.Sqrt(s.degree[v]))
		s.z[int(a)*s.n+int(b)] -= off
		s.z[int(b)*s.n+int(a)] -= off
		if a, b = s.root(a), s.root(b); a != b {
			s.parent[max(a, b)] = min(a, b)
			s.zeros--
		}
	})
	tridiagonal(s.z, s.d, s.e, s.n)
	return eigenvectors(s.z, s.d, s.e, s.n)
}

func (s *solver) root(v int32) int32 {
	for s.parent[v] != v {
		s.parent[v] = s.parent[s.parent[v]]
		v = s.parent[v]
	}
	return v
}

// sign returns the sign by which the first of the largest entries of an eigenvector becomes positive.
func (s *solver) sign(column int) float64 {
	largest := 0.0
	for j := range s.n {
		largest = max(largest, math.Abs(s.z[j*s.n+column]))
	}
	for j := range s.n {
		if y := s.z[j*s.n+column]; math.Abs(y) >= largest*(1-1e-6) {
			if y < 0 {
				return -1
			}
			return 1
		}
	}
	return 1
}

// tridiagonal reduces the symmetric matrix v [n, n] to tridiagonal form by Householder's method: d is the diagonal, e[1:] what
// is beside it, and v the transformation. It is tred2 of EISPACK (J. H. Wilkinson and C. Reinsch, Handbook for Automatic
// Computation II, Linear Algebra, 1971, doi:10.1007/978-3-642-86940-2), in the form of JAMA.
func tridiagonal(v, d, e []float64, n int) {
	if n == 0 {
		return
	}
	copy(d, v[(n-1)*n:])
	for i := n - 1; i > 0; i-- {
		scale, h := 0.0, 0.0
		for k := range i {
			scale += math.Abs(d[k])
		}
		if scale == 0 {
			e[i] = d[i-1]
			for j := range i {
				d[j] = v[(i-1)*n+j]
				v[i*n+j], v[j*n+i] = 0, 0
			}
		} else {
			for k := range i {
				d[k] /= scale
				h += d[k] * d[k]
			}
			f := d[i-1]
			g := math.Sqrt(h)
			if f > 0 {
				g = -g
			}
			e[i] = scale * g
			h -= f * g
			d[i-1] = f - g
			clear(e[:i])
			for j := range i {
				f = d[j]
				v[j*n+i] = f
				g = e[j] + v[j*n+j]*f
				for k := j + 1; k <= i-1; k++ {
					g += v[k*n+j] * d[k]
					e[k] += v[k*n+j] * f
				}
				e[j] = g
			}
			f = 0
			for j := range i {
				e[j] /= h
				f += e[j] * d[j]
			}
			hh := f / (h + h)
			for j := range i {
				e[j] -= hh * d[j]
			}
			for j := range i {
				f, g = d[j], e[j]
				for k := j; k <= i-1; k++ {
					v[k*n+j] -= f*e[k] + g*d[k]
				}
				d[j] = v[(i-1)*n+j]
				v[i*n+j] = 0
			}
		}
		d[i] = h
	}
	for i := range n - 1 {
		v[(n-1)*n+i] = v[i*n+i]
		v[i*n+i] = 1
		if h := d[i+1]; h != 0 {
			for k := 0; k <= i; k++ {
				d[k] = v[k*n+i+1] / h
			}
			for j := 0; j <= i; j++ {
				g := 0.0
				for k := 0; k <= i; k++ {
					g += v[k*n+i+1] * v[k*n+j]
				}
				for k := 0; k <= i; k++ {
					v[k*n+j] -= g * d[k]
				}
			}
		}
		for k := 0; k <= i; k++ {
			v[k*n+i+1] = 0
		}
	}
	for j := range n {
		d[j] = v[(n-1)*n+j]
		v[(n-1)*n+j] = 0
	}
	v[n*n-1] = 1
	e[0] = 0
}

// eigenvectors finds the eigenvalues d, ascending, and the eigenvectors v of a matrix that tridiagonal has reduced. It is tql2 of
// EISPACK (see tridiagonal), in the form of JAMA.
func eigenvectors(v, d, e []float64, n int) error {
	if n == 0 {
		return nil
	}
	copy(e, e[1:])
	e[n-1] = 0
	f, tst1 := 0.0, 0.0
	const eps = 0x1p-52
	for l := range n {
		tst1 = max(tst1, math.Abs(d[l])+math.Abs(e[l]))
		m := l
		for m < n-1 && math.Abs(e[m]) > eps*tst1 {
			m++
		}
		if m > l {
			for iter := 0; ; iter++ {
				if iter == 200 {
					return fmt.Errorf("the eigenvalues of %d nodes do not converge", n)
				}
				g := d[l]
				p := (d[l+1] - g) / (2 * e[l])
				r := math.Hypot(p, 1)
				if p < 0 {
					r = -r
				}
				d[l] = e[l] / (p + r)
				d[l+1] = e[l] * (p + r)
				dl1 := d[l+1]
				h := g - d[l]
				for i := l + 2; i < n; i++ {
					d[i] -= h
				}
				f += h
				p = d[m]
				c, c2, c3 := 1.0, 1.0, 1.0
				el1 := e[l+1]
				s, s2 := 0.0, 0.0
				for i := m - 1; i >= l; i-- {
					c3, c2, s2 = c2, c, s
					g = c * e[i]
					h = c * p
					r = math.Hypot(p, e[i])
					e[i+1] = s * r
					s = e[i] / r
					c = p / r
					p = c*d[i] - s*g
					d[i+1] = h + s*(c*g+s*d[i])
					for k := range n {
						row := v[k*n+i : k*n+i+2 : k*n+i+2]
						h = row[1]
						row[1] = s*row[0] + c*h
						row[0] = c*row[0] - s*h
					}
				}
				p = -s * s2 * c3 * el1 * e[l] / dl1
				e[l] = s * p
				d[l] = c * p
				if math.Abs(e[l]) <= eps*tst1 {
					break
				}
			}
		}
		d[l] += f
		e[l] = 0
	}
	for i := range n - 1 { // by selection, which moves few columns
		k := i
		for j := i + 1; j < n; j++ {
			if d[j] < d[k] {
				k = j
			}
		}
		if k != i {
			d[k], d[i] = d[i], d[k]
			for j := range n {
				v[j*n+i], v[j*n+k] = v[j*n+k], v[j*n+i]
			}
		}
	}
	return nil
}
