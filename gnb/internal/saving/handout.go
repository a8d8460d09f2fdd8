package saving

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// HandOut reads a file of weights on rank 0 and returns its content on every rank: only rank 0 needs
// the file. Collective.
func HandOut(c collective.Comm, site collective.Site, path string) ([]safetensors.Tensor, map[string]string, error) {
	var mine []byte
	if c.Rank() == 0 {
		var b bytes.Buffer
		ts, meta, err := safetensors.ReadFile(path)
		if err == nil {
			b.WriteByte('y')
			err = safetensors.Write(&b, ts, meta)
		}
		if mine = b.Bytes(); err != nil {
			mine = []byte("n" + err.Error())
		}
	}
	all, err := c.AllGather(site, mine)
	switch {
	case err != nil:
		return nil, nil, err
	case len(all[0]) == 0 || all[0][0] != 'y':
		return nil, nil, errors.New(string(all[0][min(1, len(all[0])):]))
	}
	return safetensors.Read(bytes.NewReader(all[0][1:]), int64(len(all[0])-1))
}

// OpenCheckpoint opens the checkpoint of a resumed run for the ranks of a launcher, which get it as the
// last of the run's files: only rank 0 needs the run's directory. It returns nil without a launcher.
func OpenCheckpoint(path string) (*os.File, error) {
	if p, err := multigpu.Launcher(); path == "" || p == nil || err != nil {
		return nil, err
	}
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gnb: opening the checkpoint for the other ranks: %w", err)
	}
	return f, nil
}

// CheckpointPath returns the path by which a worker reads the checkpoint: that of the last of its files
// if the checkpoint was handed out.
func CheckpointPath(path string, handed bool, files []*os.File) string {
	if !handed || len(files) == 0 {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d", files[len(files)-1].Fd())
}
