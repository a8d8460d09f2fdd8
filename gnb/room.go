package gnb

import (
	"fmt"

	"github.com/graphnb/graphnb/internal/machine"
)

// networkRoom is the error of a network whose weights and their gradients, in each of the
// workers, this machine has no room for: before they are made.
func (w *Worker) networkRoom(name string, weights int64) error {
	// The model's own, those of the flat buffer while they are copied, and the gradient.
	return w.room(fmt.Sprintf("the %d weights of model %q with their gradient", weights, name), 12*float64(weights)*float64(w.World()))
}

// optimizerRoom is that of an optimiser's state, a number of so many buffers for each weight,
// of the gradients that ranks add up, and of the copies that checkpoints are written from.
func (w *Worker) optimizerRoom(n *network, buffers int) error {
	weights, world := float64(n.params.Len()), float64(w.World())
	need := 4 * weights * float64(buffers) * world
	if n.dev == nil {
		need += 4 * weights * (world*float64(w.job.Virtual) + 1)
	}
	if w.saving.On() {
		need += 4 * weights * float64(buffers+1)
	}
	return w.room(fmt.Sprintf("training the %d weights of model %q", n.params.Len(), n.name), need)
}

func (w *Worker) room(what string, bytes float64) error {
	if w.World() > 1 {
		what += fmt.Sprintf(" in %d workers", w.World())
	}
	if err := machine.Room(what, bytes); err != nil {
		return fmt.Errorf("gnb: %w; take a smaller model (Hidden, Layers, Heads) or fewer workers", err)
	}
	return nil
}
