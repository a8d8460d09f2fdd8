package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/recorder"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// submission is what the ranks of a submitted run launch.
type submission struct {
	Program  string          `json:"program"`
	Args     json.RawMessage `json:"args"`
	Options  LaunchOptions   `json:"options"`
	DataDir  string          `json:"data_dir,omitempty"`
	SplitSet int             `json:"split_set,omitempty"`
	Metric   string          `json:"metric,omitempty"`
	Identity *runs.Identity  `json:"identity"` // the cell's: its source may be gone
}

// submit makes the run a job of a cluster and follows it; asked are the options as given. If the
// run's job is still there, submit continues to follow it.
func (l *launched) submit(ctx context.Context, asked LaunchOptions) (*runs.Run, error) {
	c := l.run.Config
	show := l.recorded()
	if r, id := recorder.Submitted(ctx, l.o.RunDir, c.Identity.Run); r != nil && l.o.Resume != Never {
		show.Notes = []string{fmt.Sprintf("run %s continues as job %s", r.Config.ID, id)}
		return recorder.Follow(ctx, r.Dir, show, true)
	}
	dir, err := l.resumable(c)
	if err == nil && dir == "" {
		err = l.directory()
		dir = l.run.Dir
		l.lock.Unlock() // the job locks it
	}
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	s := submission{Program: c.Program, Args: c.Args, Options: asked, DataDir: l.job.DataDir, SplitSet: l.job.SplitSet, Metric: l.job.Metric, Identity: c.Identity}
	s.Options.RunDir, s.Options.Cluster, s.Options.Workers, s.Options.Quiet = dir, cluster.Batch{}, l.o.Workers, false
	if l.job.DataInMemory {
		s.DataDir = filepath.Join(dir, "data")
		if err := errors.Join(os.RemoveAll(s.DataDir), dataset.WriteWith(ctx, s.DataDir, l.o.Data, dataset.WriteOptions{})); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(runfile.JobDir(dir), "launch.json")
	if err := errors.Join(os.MkdirAll(runfile.JobDir(dir), 0o755), runfile.WriteJSON("gnb", file, s)); err != nil {
		return nil, err
	}
	job, err := l.o.Cluster.Submit(ctx, runfile.JobDir(dir), "gnb-"+c.Program, []string{entry.JobArg(file)})
	if err != nil {
		return nil, err
	}
	show.Notes = append(l.notes, fmt.Sprintf("job %s on %d nodes, %d ranks; its files are in %s", job.ID, l.o.Cluster.Nodes, l.o.Workers, job.Dir))
	return recorder.Follow(ctx, dir, show, true)
}

// runJob launches what a submission says, on rank 0 of its job.
func runJob(file string) (status int) {
	err := launchJob(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, phrase.Sentence(err.Error()))
	}
	if err != nil {
		status = multigpu.StatusOf(err, errors.Is(err, runs.ErrInterrupted) || errors.Is(err, context.Canceled))
	}
	multigpu.Leave(status)
	return status
}

func launchJob(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) // as its time limit comes near
	defer stop()
	defer cluster.WatchStop(filepath.Dir(file), stop)()
	var s submission
	if err := runfile.ReadJSON("gnb", file, &s); err != nil {
		return err
	}
	if s.DataDir != "" {
		ds, err := jobData{DataDir: s.DataDir, SplitSet: s.SplitSet, Metric: s.Metric}.Open(nil)
		if err != nil {
			return err
		}
		s.Options.Data = ds
	}
	def, err := programs.Get(s.Program)
	if err != nil {
		return err
	}
	l := &launched{o: s.Options, whole: def.whole}
	defer l.close()
	if err := errors.Join(l.options(), l.configure(s.Program, s.Args)); err != nil {
		return err
	}
	if err := l.data(ctx); err != nil {
		return err
	}
	dir := s.Options.RunDir
	first, err := saving.OpenToResume(dir)
	if err != nil {
		return err
	}
	c := &l.run.Config
	c.Identity = s.Identity
	l.setFrom(first.Config.From) // the weights that were there when the run was submitted, or none
	l.fromOtherData()
	if runfile.Exists(filepath.Join(dir, runfile.Metrics)) {
		if err := l.resume(dir); err != nil {
			return err
		}
	} else {
		c.ID, c.Created = first.Config.ID, first.Config.Created
		if err := errors.Join(l.lockRun(dir), l.write(dir, "")); err != nil {
			return err
		}
	}
	_, err = l.start(ctx)
	return err
}
