package saving

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// HandOut reads a file of weights on rank 0 and returns its content on every rank, but for learned rows, which
// rank 0 alone gets: only rank 0 needs the file. Collective.
func HandOut(c collective.Comm, site collective.Site, path string) ([]safetensors.Tensor, map[string]string, error) {
	if c.Size() == 1 {
		return safetensors.ReadFile(path)
	}
	var mine []byte
	var whole []safetensors.Tensor
	var meta map[string]string
	if c.Rank() == 0 {
		var err error
		if whole, meta, err = safetensors.ReadFile(path); err == nil {
			var b bytes.Buffer
			b.WriteByte('y')
			err = safetensors.Write(&b, without(whole, EmbeddingWeights), meta)
			mine = b.Bytes()
		}
		if err != nil {
			mine = []byte("n" + err.Error())
		}
	}
	all, err := c.AllGather(site, mine)
	switch {
	case err != nil:
		return nil, nil, err
	case len(all[0]) == 0 || all[0][0] != 'y':
		return nil, nil, errors.New(string(all[0][min(1, len(all[0])):]))
	case c.Rank() == 0:
		return whole, meta, nil
	}
	return safetensors.Read(bytes.NewReader(all[0][1:]), int64(len(all[0])-1))
}

// OpenCheckpoint opens the checkpoint of a resumed run for the ranks of a launcher, which get it as the
// last of the run's files: only rank 0 needs the run's directory. It has no learned embeddings,
// because rank 0 sends each rank its rows. It returns nil without a launcher.
func OpenCheckpoint(path string) (f *os.File, err error) {
	p, err := multigpu.Launcher()
	if path == "" || p == nil || err != nil {
		return nil, err
	}
	if f, err = atomicfile.Open(path); err == nil {
		f, err = withoutRows(f, path)
	}
	if err != nil {
		return nil, fmt.Errorf("gnb: opening the checkpoint for the other ranks: %w", err)
	}
	return f, nil
}

// withoutRows returns the checkpoint in f, without learned embeddings if it has any: f, or another file that has no name.
func withoutRows(f *os.File, path string) (*os.File, error) {
	var raw json.RawMessage
	var st State
	ts, err := checkpoint.Load(path, &raw)
	if err == nil {
		err = json.Unmarshal(raw, &st)
	}
	if err != nil || len(st.Embeddings) == 0 {
		return f, err
	}
	defer f.Close()
	ts = without(ts, allBest) // rank 0 alone writes these
	for _, e := range st.Embeddings {
		ts = without(ts, EmbeddingTensor(e.Network, ""))
	}
	dir, err := os.MkdirTemp("", "gnb-checkpoint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if path, err = checkpoint.Save(dir, st.Position.Total, ts, raw, 0); err != nil {
		return nil, err
	}
	return atomicfile.Open(path)
}

// CheckpointPath returns the path by which a worker reads the checkpoint: that of the last of its files
// if the checkpoint was handed out.
func CheckpointPath(path string, handed bool, files []*os.File) string {
	if !handed || len(files) == 0 {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d", files[len(files)-1].Fd())
}

// without returns the tensors whose names do not begin with prefix.
func without(ts []safetensors.Tensor, prefix string) (kept []safetensors.Tensor) {
	for _, t := range ts {
		if !strings.HasPrefix(t.Name, prefix) {
			kept = append(kept, t)
		}
	}
	return kept
}
