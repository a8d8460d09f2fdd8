package runs

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/tbevents"
)

// ExportOptions configure [Export].
type ExportOptions struct {
	// TensorBoard is the directory for "tensorboard --logdir". The run gets a subdirectory: its name if the run is in [Dir],
	// else the name of its directory with a hash of its path. If TensorBoard is the run's own directory, the file is
	// written there.
	TensorBoard string
	// Follow continues the export until the run has ended or ctx is done.
	Follow bool
}

// Export writes a run's metrics for other programs. For TensorBoard that is an event file with loss and learning rate by
// step; loss, accuracy and shares of time by epoch; evaluations; logged values; and the settings for TensorBoard's table of
// hyper-parameters. The file replaces an earlier export.
//
// gnb.LaunchOptions.TensorBoard writes the same while the run trains.
func Export(ctx context.Context, r *Run, o ExportOptions) error {
	entry.Enter()
	switch {
	case r == nil || r.Dir == "":
		return errors.New("runs: Export needs a run with a directory; get one from runs.Last or runs.Open")
	case o.TensorBoard == "":
		return errors.New("runs: Export needs a directory for what it writes: ExportOptions{TensorBoard: \"tb\"}")
	}
	dir := filepath.Join(o.TensorBoard, r.boardName())
	if o.TensorBoard == r.Dir {
		dir = r.Dir
	}
	b, err := newBoard(r, dir)
	if err != nil {
		return err
	}
	for {
		on := o.Follow && runfile.InUse(r.Dir) // check before reading, so that the last read sees everything the run wrote
		if err := b.more(); err != nil || !on {
			return b.close(err)
		}
		select {
		case <-ctx.Done():
			if err := b.close(b.more()); err != nil {
				return err
			}
			return ctx.Err()
		case <-time.After(boardEvery):
		}
	}
}

// boardName returns the name of the run's subdirectory for TensorBoard: always the same for one
// run, and different for different runs.
func (r *Run) boardName() string {
	if name, ok := r.inRunsDir(); ok {
		return name
	}
	dir, trial := runfile.Absolute(r.Dir), ""
	if sweep := filepath.Dir(dir); runfile.Exists(filepath.Join(sweep, runfile.Sweep)) {
		dir, trial = sweep, filepath.Base(dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(fmt.Sprintf("%s-%x", strings.Trim(filepath.Base(dir), string(filepath.Separator)), sum[:4]), trial)
}

// boardEvery is the interval at which a board reads new metrics. TensorBoard itself reads every 5
// seconds.
const boardEvery = time.Second

// board writes a run's metrics to an event file for TensorBoard.
type board struct {
	run     *Run
	dir     string
	file    *os.File
	buf     *bufio.Writer
	w       *tbevents.Writer
	metrics os.FileInfo // the metrics file being read
	read    int64       // bytes read so far
	at      time.Time   // time of the last event
	failed  error       // the first failure to write
	lost    error       // names the damaged lines of the metrics
}

// newBoard starts an event file in dir and replaces earlier ones written by this package.
func newBoard(r *Run, dir string) (*board, error) {
	b := &board{run: r, dir: dir}
	return b, b.begin()
}

func (b *board) begin() error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("runs: making a directory for TensorBoard: %w; choose a place that can be written to", err)
	}
	if err := runfile.RemoveBoards(b.dir); err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	b.metrics, b.read, b.at = nil, 0, b.run.Config.Created
	var err error
	if b.file, err = os.Create(filepath.Join(b.dir, tbevents.FileName(time.Now(), filepath.Base(b.run.Dir)+runfile.BoardSuffix))); err != nil {
		return fmt.Errorf("runs: making a file for TensorBoard: %w; choose a place that can be written to", err)
	}
	b.buf = bufio.NewWriterSize(b.file, 1<<16)
	if b.w, err = tbevents.New(b.buf, b.at); err == nil {
		err = b.w.HParams(b.at, b.run.Config.ID, b.hparams())
	}
	return err
}

// hparams returns the run's settings by their shortest unambiguous names.
func (b *board) hparams() map[string]any {
	settings := b.run.settings()
	out := map[string]any{}
	for name, text := range settings {
		if slices.Contains(leastTelling, name) && name != "seed" || text == "" {
			continue
		}
		var v any = text
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			v = x
		} else if yes, err := strconv.ParseBool(text); err == nil {
			v = yes
		}
		out[shortName(name, []map[string]string{settings})] = v
	}
	return out
}

// more writes the new events in the run's metrics.
func (b *board) more() error {
	info, err := os.Stat(filepath.Join(b.run.Dir, runfile.Metrics))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return b.buf.Flush()
		}
		return fmt.Errorf("runs: reading a run's metrics: %w", err)
	}
	if b.metrics != nil && (!os.SameFile(info, b.metrics) || info.Size() < b.read) {
		// The run was resumed and its metrics were cut: the events that it repeats are already in
		// the file, so start a new one.
		if r, err := Open(b.run.Dir); err == nil {
			b.run = r // with the settings that it goes on with
		}
		if err := errors.Join(b.file.Close(), b.begin()); err != nil {
			return err
		}
	}
	b.metrics = info
	if b.read, err = runfile.ReadMetrics(b.run.Dir, b.read, b.take); runfile.IgnoreDamage(err) == nil && err != nil {
		b.lost, err = err, nil // keep the undamaged lines
	}
	return errors.Join(err, b.failed, b.buf.Flush())
}

// take writes one event of the run.
func (b *board) take(e Event) {
	if e.Time > 0 {
		b.at = time.UnixMicro(int64(e.Time * 1e6))
	}
	switch e.Kind {
	case KindSteps:
		for _, r := range e.Records {
			s := []tbevents.Scalar{{Tag: "loss/step", Value: float64(r.Loss)}}
			if r.LR > 0 {
				s = append(s, tbevents.Scalar{Tag: "learning_rate", Value: float64(r.LR)})
			}
			b.put(r.Total, s)
		}
	case KindEpoch:
		if e.Time == 0 { // from a version that did not record the time
			b.at = b.at.Add(time.Duration(e.Seconds * float64(time.Second)))
		}
		s := []tbevents.Scalar{{Tag: "loss/epoch", Value: float64(e.Loss)}, {Tag: "epoch_seconds", Value: e.Seconds}}
		if x := float64(e.Accuracy); !math.IsNaN(x) {
			s = append(s, tbevents.Scalar{Tag: "accuracy/train", Value: x})
		}
		sum := 0.0
		for _, sec := range e.Stages {
			sum += sec
		}
		for _, stage := range runfile.Stages {
			if sec := e.Stages[stage]; sec > 0 {
				s = append(s, tbevents.Scalar{Tag: "stages/" + stage, Value: sec / sum})
			}
		}
		b.put(e.Total, s)
	case KindMetrics, KindLog:
		var s []tbevents.Scalar
		for _, v := range e.Values {
			if !math.IsNaN(v.Value) {
				s = append(s, tbevents.Scalar{Tag: boardTag(e.Kind, v.Name), Value: v.Value})
			}
		}
		b.put(e.Total, s)
	case KindDrawn:
		b.failed = cmp.Or(b.failed, b.draw(e))
	}
}

// boardTag groups values of one metric: val_accuracy and test_accuracy become accuracy/val and
// accuracy/test.
func boardTag(kind Kind, name string) string {
	if kind == KindLog {
		return "log/" + name
	}
	split, _, ok := runfile.CutMetric(name, nil)
	if of, _, cut := strings.Cut(name, "_"); cut && slices.Contains([]string{"train", "val", "test"}, of) {
		split, ok = of, true // also a metric of a task's own
	}
	if !ok {
		split, ok = strings.CutSuffix(name, "_loss")
	}
	if !ok {
		return name
	}
	return strings.TrimPrefix(name, split+"_") + "/" + split
}

func (b *board) put(step int64, values []tbevents.Scalar) {
	if err := b.w.Scalars(b.at, step, values...); err != nil && b.failed == nil {
		b.failed = err
	}
}

// close writes the run's final state, if it has ended, closes the file and returns the first
// error.
func (b *board) close(err error) error {
	if r, opened := Open(b.run.Dir); err == nil && opened == nil {
		switch r.Result.State {
		case StateDone:
			err = b.w.End(b.at, tbevents.Success)
		case StateFailed:
			err = b.w.End(b.at, tbevents.Failure)
		}
	}
	return errors.Join(err, b.lost, b.buf.Flush(), b.file.Close())
}
