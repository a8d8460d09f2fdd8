package pairs

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Grouped returns edges and their negatives in groups, as losses take their scores: an edge, its
// negatives, the next edge, and so on. neg holds equally many negatives for each edge, as
// [Negatives.Draw] returns them; the other result is their number.
//
// It returns an error if neg does not divide among the edges.
func Grouped(pos, neg Edges) (all Edges, perEdge int, err error) {
	if pos.Len() == 0 {
		if neg.Len() > 0 {
			return all, 0, fmt.Errorf("pairs: there are %d negatives but no edges", neg.Len())
		}
		return all, 0, nil
	}
	if neg.Len()%pos.Len() != 0 {
		return all, 0, fmt.Errorf("pairs: %d negatives do not divide among %d edges; give equally many for each", neg.Len(), pos.Len())
	}
	k := neg.Len() / pos.Len()
	all = Edges{make([]int32, 0, pos.Len()+neg.Len()), make([]int32, 0, pos.Len()+neg.Len())}
	for i := range pos.Src {
		all.Src = append(append(all.Src, pos.Src[i]), neg.Src[i*k:(i+1)*k]...)
		all.Dst = append(append(all.Dst, pos.Dst[i]), neg.Dst[i*k:(i+1)*k]...)
	}
	return all, k, nil
}

// groups returns scores [P·(1+perEdge),1] as [P,1+perEdge]: column 0 has the edges.
func groups(op string, scores *nn.Tensor, perEdge int) *nn.Tensor {
	switch {
	case scores == nil:
		lossFail(op, "the scores are a nil tensor")
	case perEdge < 0 || scores.Cols() != 1 || scores.Rows()%(1+perEdge) != 0:
		lossFail(op, "the scores are [%d,%d], which are no groups of an edge and %d negatives", scores.Rows(), scores.Cols(), perEdge)
	}
	return scores.Fwd().Reshape(scores, scores.Rows()/(1+perEdge), 1+perEdge)
}

func lossFail(op, format string, args ...any) {
	panic(&tensor.Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}

// BCE is the binary cross-entropy of scores of groups (see [Grouped]), [P·(1+perEdge),1] logits: an
// edge is 1, and a negative 0.
//
//	Sum = Σ log(1+e^-s) over edges + Σ log(1+e^s) over negatives
//
// Weight is the number of scores. Correct counts edges above 0 and negatives not above 0. It panics
// with a *tensor.Error if the scores do not divide into groups.
func BCE(scores *nn.Tensor, perEdge int) *nn.Loss {
	x := groups("BCE", scores, perEdge)
	targets := make([]int8, x.Rows()*x.Cols())
	for i := range x.Rows() {
		targets[i*x.Cols()] = 1
	}
	return nn.BCEWithLogits(x, targets)
}

// Softmax is the cross-entropy of each edge against its negatives, of scores as in [BCE]:
//
//	Sum = Σ over edges of log(Σ e^s over the group) - s of the edge
//
// Weight is the number of edges. Correct counts the edges that no negative of their group is above.
// It is the loss of sampled softmax, and of InfoNCE with a temperature of 1.
func Softmax(scores *nn.Tensor, perEdge int) *nn.Loss {
	if perEdge < 1 {
		lossFail("Softmax", "there are %d negatives for each edge; it needs at least one", perEdge)
	}
	x := groups("Softmax", scores, perEdge)
	return nn.CrossEntropy(x, make([]int32, x.Rows()))
}

// MaxMargin is the hinge loss of scores as in [BCE], with a margin above 0:
//
//	Sum = Σ over edges and their negatives of max(0, margin - s of the edge + s of the negative)
//
// Weight is the number of negatives. There is no Correct.
func MaxMargin(scores *nn.Tensor, perEdge int, margin float64) *nn.Loss {
	const op = "MaxMargin"
	if perEdge < 1 || !(margin > 0) {
		lossFail(op, "there are %d negatives for each edge and a margin of %v; it needs at least one, and a margin above 0", perEdge, margin)
	}
	x := groups(op, scores, perEdge)
	f, n := x.Fwd(), x.Rows()*perEdge
	edges, negatives := make([]int32, 0, n), make([]int32, 0, n) // rows of scores, for each negative
	for first := 0; first < scores.Rows(); first += 1 + perEdge {
		for j := range perEdge {
			edges, negatives = append(edges, int32(first)), append(negatives, int32(first+1+j))
		}
	}
	gap := f.AddRow(f.Sub(f.Gather(scores, negatives), f.Gather(scores, edges)), f.Input(1, 1, []float32{float32(margin)}, nil))
	return &nn.Loss{Sum: f.SumAll(f.ReLU(gap)), Weight: float64(n)}
}
