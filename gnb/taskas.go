package gnb

import (
	"context"
	"encoding/json"

	"github.com/graphnb/graphnb/gnb/runs"
)

// TaskAs is a task whose options have the type O for those who set them, and R as runs record them: for instance a model by its
// handle, and by its name. See [RecordAs].
type TaskAs[O, R any] struct {
	task    *TaskOf[R]
	subject func(o *O) TaskOptions
	record  func(ds *Dataset, o O) R
	give    func(r R) (O, error)
}

// RecordAs makes a task with options O of one with options R. record returns the options as runs record them; give is the
// opposite.
func RecordAs[O, R any, P interface {
	*O
	TaskOptions
}](task *TaskOf[R], record func(ds *Dataset, o O) R, give func(r R) (O, error)) *TaskAs[O, R] {
	return &TaskAs[O, R]{task, func(o *O) TaskOptions { return P(o) }, record, give}
}

// Name is the name the task was declared under.
func (t *TaskAs[O, R]) Name() string { return t.task.Name() }

// Train is [TaskOf.Train].
func (t *TaskAs[O, R]) Train(ctx context.Context, ds *Dataset, o O) (*runs.Run, error) {
	if ds == nil {
		return nil, noDataset(t.Name())
	}
	return t.task.Train(ctx, ds, t.record(ds, o))
}

// SharedOptions is [TaskOf.SharedOptions].
func (t *TaskAs[O, R]) SharedOptions(o O) TrainOptions { return sharedOf(t.subject(&o)) }

// WithLaunch is [TaskOf.WithLaunch].
func (t *TaskAs[O, R]) WithLaunch(o O, l LaunchOptions) O {
	*t.subject(&o).launch() = l
	return o
}

// Recorded is [TaskOf.Recorded].
func (t *TaskAs[O, R]) Recorded(ctx context.Context, ds *Dataset, o O) (json.RawMessage, error) {
	if ds == nil {
		return nil, noDataset(t.Name())
	}
	return t.task.Recorded(ctx, ds, t.record(ds, o))
}

// Options is [TaskOf.Options].
func (t *TaskAs[O, R]) Options(recorded json.RawMessage) (o O, err error) {
	r, err := t.task.Options(recorded)
	if err != nil {
		return o, err
	}
	return t.give(r)
}

// OptionsOf is [TaskOf.OptionsOf].
func (t *TaskAs[O, R]) OptionsOf(run *runs.Run) (o O, err error) {
	r, err := t.task.OptionsOf(run)
	if err != nil {
		return o, err
	}
	return t.give(r)
}

// Identify is [TaskOf.Identify].
func (t *TaskAs[O, R]) Identify(ctx context.Context, ds *Dataset) (*runs.Identity, error) {
	return t.task.Identify(ctx, ds)
}
