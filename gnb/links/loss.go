package links

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// losses are the losses that a program declares.
var losses = entry.Registry[func(b *Batch, scores *nn.Tensor) *nn.Loss]{Kind: "loss of links"}

// DeclareLoss declares a loss of a program's own under a name that must be unique in the program, for the OwnLoss of
// [Options], and returns the name. loss computes the loss of a batch from the scores of its pairs, [len(b.Pairs),1]:
// groups of an edge and its b.PerEdge negatives, as [BCE] takes them. Declare it at package level:
//
//	var plain = links.DeclareLoss("plain", func(b *links.Batch, scores *nn.Tensor) *nn.Loss { return links.BCE(scores, b.PerEdge) })
func DeclareLoss(name string, loss func(b *Batch, scores *nn.Tensor) *nn.Loss) string {
	losses.Add(name, loss != nil, loss, loss)
	return name
}

// ownLoss returns a declared loss.
func ownLoss(name string) (func(b *Batch, scores *nn.Tensor) *nn.Loss, error) {
	if !losses.Has(name) {
		return nil, fmt.Errorf("links: OwnLoss is %q, which is not declared; declare it at package level (links.DeclareLoss)", name)
	}
	return losses.Get(name)
}

// checkLoss returns an error for options of the loss that do not fit each other.
func (o *Options) checkLoss() error {
	switch {
	case o.Loss != "" && o.Loss != "bce" && o.Loss != "softmax" && o.Loss != "max-margin":
		return fmt.Errorf("links: Loss is %q; it is bce, softmax or max-margin", o.Loss)
	case o.Margin < 0 || math.IsNaN(o.Margin) || math.IsInf(o.Margin, 0):
		return fmt.Errorf("links: Margin is %v; it is a number above 0 (0 means 1)", o.Margin)
	case o.OwnLoss != "" && (o.Loss != "" && o.Loss != "bce" || o.PosWeight != 0 || o.LabelSmoothing != 0):
		return fmt.Errorf("links: Loss, PosWeight and LabelSmoothing are of the library's losses, and OwnLoss is %q; leave them out", o.OwnLoss)
	case o.PosWeight != 0 && o.Loss != "" && o.Loss != "bce":
		return fmt.Errorf("links: PosWeight is for the loss bce, and Loss is %s, which compares each edge with its own negatives; leave PosWeight out", o.Loss)
	case o.LabelSmoothing != 0 && o.Loss == "max-margin":
		return errors.New("links: LabelSmoothing is for the losses bce and softmax, and max-margin has no probabilities to smooth; leave it out")
	}
	if err := (pairs.LossOptions{PosWeight: o.PosWeight, Smoothing: o.LabelSmoothing}).Check(); err != nil {
		return fmt.Errorf("links: PosWeight, LabelSmoothing: %w", err)
	}
	if o.OwnLoss != "" {
		_, err := ownLoss(o.OwnLoss)
		return err
	}
	return nil
}

// loss returns the function of the run's loss.
func (o *Options) loss() (func(b *Batch, scores *nn.Tensor) *nn.Loss, error) {
	if o.OwnLoss != "" {
		return ownLoss(o.OwnLoss)
	}
	of := pairs.LossOptions{PosWeight: o.PosWeight, Smoothing: o.LabelSmoothing}
	return func(b *Batch, scores *nn.Tensor) *nn.Loss {
		switch o.Loss {
		case "softmax":
			return of.Softmax(scores, b.PerEdge)
		case "max-margin":
			return MaxMargin(scores, b.PerEdge, o.Margin)
		}
		return of.BCE(scores, b.PerEdge)
	}, nil
}
