package kg

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/nn"
)

// losses are the losses that a program declares.
var losses = entry.Registry[func(scores *nn.Tensor, perTriple int) *nn.Loss]{Kind: "loss of triples"}

// ownLoss is the Loss of a run with a loss of the program's own.
const ownLoss = "own"

// DeclareLoss declares a loss of a program's own under a name that must be unique in the program, for the OwnLoss of
// [Options], and returns the name. loss computes the loss of a batch from the scores of its triples,
// [triples·(1+perTriple),1]: each triple is followed by its perTriple negatives. Declare it at package level:
//
//	var plain = kg.DeclareLoss("plain", func(scores *nn.Tensor, perTriple int) *nn.Loss { return pairs.BCE(scores, perTriple) })
func DeclareLoss(name string, loss func(scores *nn.Tensor, perTriple int) *nn.Loss) string {
	losses.Add(name, loss != nil, loss, loss)
	return name
}

// completeLoss checks the options of the loss, and fills in their defaults.
func (o *Options) completeLoss() error {
	if o.PosWeight == 1 {
		o.PosWeight = 0
	}
	if err := o.labels().Check(); err != nil {
		return fmt.Errorf("kg: PosWeight, LabelSmoothing: %w", err)
	}
	switch {
	case o.OwnLoss == "":
		o.Loss = cmp.Or(o.Loss, map[string]string{"transe": "max-margin", "rotate": "bce"}[o.Decoder], "kvsall")
	case o.Loss != "" && o.Loss != ownLoss || o.PosWeight != 0 || o.LabelSmoothing != 0:
		return fmt.Errorf("kg: Loss, PosWeight and LabelSmoothing are of the library's losses, and OwnLoss is %q; leave them out", o.OwnLoss)
	case o.Decoder == "conve":
		return errors.New("kg: ConvE trains with all entities, and OwnLoss gets scores of triples and their negatives; leave OwnLoss out")
	case !losses.Has(o.OwnLoss):
		return fmt.Errorf("kg: OwnLoss is %q, which is not declared; declare it at package level (kg.DeclareLoss)", o.OwnLoss)
	default:
		if _, err := losses.Get(o.OwnLoss); err != nil {
			return err
		}
		o.Loss = ownLoss
		return nil
	}
	switch o.Loss {
	case "kvsall", "1vsall", "bce", "softmax", "max-margin":
	default:
		return fmt.Errorf("kg: Loss is %q; it is kvsall, 1vsall, bce, softmax or max-margin", o.Loss)
	}
	switch {
	case o.PosWeight != 0 && o.Loss != "bce":
		return fmt.Errorf("kg: PosWeight is for the loss bce, and Loss is %s; leave it out", o.Loss)
	case o.LabelSmoothing != 0 && o.Loss == "kvsall":
		return errors.New("kg: LabelSmoothing is for the losses 1vsall, bce and softmax; kvsall has Smoothing")
	case o.LabelSmoothing != 0 && o.Loss == "max-margin":
		return errors.New("kg: LabelSmoothing is for the losses 1vsall, bce and softmax, and max-margin has no probabilities to smooth; leave it out")
	}
	return nil
}
