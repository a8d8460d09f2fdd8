package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// Load sets the parameters of a network to those of the run at the best validation accuracy, or to the final ones if there are
// no best ones. The network has the run's layers: for a model of the library, the run's sizes make it.
//
//	net := nn.NewSAGEModel(run.Result.Model.Config)
//	gnb.Check(run.Load(net))
//
// It computes then by nn.LayerWise or nn.Forward, outside of workers. Names and shapes must be those of the file, in which
// the error names what differs; nothing is changed then. A run whose input are learned rows is refused.
func (r *Run) Load(net nn.Model) error {
	file, info, err := r.WeightsFile(false)
	if err != nil {
		return err
	}
	if info != nil && (info.Config.Embedding || len(info.Config.Learned) > 0) {
		return fmt.Errorf("gnb: run %s has learned a row for each node, which are no parameters of a network; take gnb.Infer", r.Config.ID)
	}
	var params *nn.Params
	if e := nn.Try(func() { params, err = nn.Collect(net) }); e != nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("gnb: the network for the weights of run %s: %w", r.Config.ID, err)
	}
	ts, _, err := safetensors.ReadFile(file)
	if err != nil {
		return fmt.Errorf("gnb: the weights of run %s: %w", r.Config.ID, err)
	}
	values := make(map[string]nn.Value, len(ts))
	for _, t := range ts {
		values[t.Name] = nn.Value{Shape: t.Shape, Data: t.F32}
	}
	if err := params.Load(values); err != nil {
		return fmt.Errorf("gnb: %s: %w", file, err)
	}
	return nil
}

// WeightsFile returns the file of weights to use: those at the best validation accuracy, or the
// final ones if there are no best ones or final is set. It also returns the network's description,
// nil if none was recorded. It fails if the run did not write the file.
func (r *Run) WeightsFile(final bool) (path string, model *ModelInfo, err error) {
	_, path, model, err = r.ReadWeights(final)
	return path, model, err
}

// ReadWeights is [Run.WeightsFile] that also returns what the file has.
func (r *Run) ReadWeights(final bool) (ts []safetensors.Tensor, path string, model *ModelInfo, err error) {
	for _, file := range []string{r.BestWeights(), r.Weights()} {
		if final && file != r.Weights() {
			continue
		}
		name := filepath.Base(file)
		said, written := r.Result.Weights[name]
		ts, meta, err := r.readWeights(file)
		switch {
		case errors.Is(err, os.ErrNotExist) && !written:
			continue
		case errors.Is(err, os.ErrNotExist):
			wayOut := "put it back"
			if !final {
				wayOut += ", or take the final weights (Final, --final)"
			}
			return nil, "", nil, fmt.Errorf("gnb: %s of run %s is missing; %s", name, r.Config.ID, wayOut)
		case err != nil:
			return nil, "", nil, fmt.Errorf("gnb: the weights of run %s: %w", r.Config.ID, err)
		}
		if written && safetensors.SumIn(meta) != said {
			return nil, "", nil, fmt.Errorf("gnb: %s is not the file that run %s wrote; put that back, or train again", file, r.Config.ID)
		}
		if text := meta[runfile.MetaModel]; text != "" {
			model = &ModelInfo{}
			if err := json.Unmarshal([]byte(text), model); err != nil {
				return nil, "", nil, fmt.Errorf("gnb: %s: what it says of its network cannot be read: %w", file, err)
			}
		}
		if r.files == nil {
			file = runfile.Absolute(file)
		}
		return ts, file, model, nil
	}
	return nil, "", nil, fmt.Errorf("gnb: run %s has no weights yet; it is %s", r.Config.ID, r.Result.State)
}

// readWeights reads a file of weights.
func (r *Run) readWeights(file string) ([]safetensors.Tensor, map[string]string, error) {
	if r.files != nil {
		return safetensors.ReadFS(r.files, filepath.Base(file))
	}
	return safetensors.ReadFile(file)
}
