package links

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
)

// largeFeatures is the sum of the absolute features of a node above which Adam's usual rate of 0.01 is too high: a step
// changes each hidden unit by up to the rate times this sum, and the inner product of two embeddings by its square. On the
// co-purchases of computers (270, binary words) the first step takes the loss from 2 to 579 at 0.01, and to 29 at 0.003, and
// all scores are constant from then on; at 0.001 it goes to 2.5, and the network learns.
const largeFeatures = 100

// largeRate is the default learning rate for such features.
const largeRate = 0.001

// rateFor returns the default learning rate: largeRate if the features of nodes are large, and 0, which means the usual one,
// otherwise. Features in parts and at servers are not read.
func rateFor(ds *gnb.Dataset, embedding int) float64 {
	if embedding == 0 && featureSum(ds) > largeFeatures {
		return largeRate
	}
	return 0
}

// featureSum is the mean over up to 1024 nodes of the sum of their absolute features.
func featureSum(ds *gnb.Dataset) float64 {
	n := ds.Nodes()
	step := max(1, n/1024)
	sum, rows := 0.0, 0
	for v := 0; v < n; v += step {
		switch {
		case ds.Features != nil && ds.Features.Rows == n:
			row := make([]float32, ds.Features.Cols)
			ds.Features.Gather(row, []int32{int32(v)}, 1)
			for _, x := range row {
				sum += math.Abs(float64(x))
			}
		case ds.SparseFeatures != nil && ds.SparseFeatures.Rows == n:
			columns, values := ds.SparseFeatures.Row(v)
			if values == nil { // all are 1
				sum += float64(len(columns))
			}
			for _, x := range values {
				sum += math.Abs(float64(x))
			}
		default:
			return 0
		}
		rows++
	}
	return sum / float64(max(1, rows))
}

// sayRate says that a run trains at the default rate for large features. The arguments of the run do not tell whether the user
// has chosen this rate, because a resumed run is given it.
func sayRate(w *gnb.Worker, lr float64, learned bool) {
	if lr != largeRate || learned {
		return
	}
	if sum := featureSum(w.Dataset()); sum > largeFeatures {
		w.Printf("the features of a node add up to %.0f, and the default learning rate for such features is %v instead of 0.01 (LR, --lr)", sum, lr)
	}
}

// sayConstant says, once for each part, that nearly all of its scores are equal, so that its metrics are those of chance.
func (l *Loader) sayConstant(m Metrics) {
	all := len(m.Pos) + len(m.Neg)
	x, n := majority(m.Pos, m.Neg)
	if n < 2 || n < all-all/20 || slices.Contains(l.constant, m.Part) {
		return
	}
	l.constant = append(l.constant, m.Part)
	l.w.Printf("%d of %d scores of the %s are %v: the network gives all pairs the same score, and its metrics are those of chance; take a smaller learning rate (--lr), or normalise (--norm batch)", n, all, m.Part, x)
}

// majority returns the number that is more than half of all, if there is one, and how often it occurs. It takes two passes and no
// memory.
//
// Source: R. S. Boyer, J. S. Moore, "MJRTY: a fast majority vote algorithm", 1991, doi:10.1007/978-94-011-3488-0_5.
func majority(lists ...[]float32) (x float32, n int) {
	lead := 0
	for _, xs := range lists {
		for _, y := range xs {
			switch {
			case lead == 0:
				x, lead = y, 1
			case y == x:
				lead++
			default:
				lead--
			}
		}
	}
	for _, xs := range lists {
		for _, y := range xs {
			if y == x {
				n++
			}
		}
	}
	return x, n
}
