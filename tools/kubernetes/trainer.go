//go:build trainer

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	configapi "github.com/kubeflow/trainer/v2/pkg/apis/config/v1alpha1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// build returns the JobSet that Trainer's controller makes of a TrainJob.
func build(ctx context.Context, job *trainer.TrainJob, runtimes []*trainer.ClusterTrainingRuntime) (*jobset.JobSet, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme, schedulerplugins.AddToScheme, volcano.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	server := fake.NewClientBuilder().WithScheme(scheme) // an API server in memory
	if job.Namespace == "" {
		job.Namespace = "default"
	}
	job.UID = "1" // as an API server sets it
	for _, r := range runtimes {
		server.WithObjects(r)
	}
	c := server.Build()
	known, err := core.New(ctx, c, indexes{}, &configapi.Configuration{})
	if err != nil {
		return nil, err
	}
	r := known[core.ClusterTrainingRuntimeGroupKind]
	if _, errs := r.ValidateObjects(ctx, nil, job); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	objects, err := r.NewObjects(ctx, job)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		var js jobset.JobSet
		if json.Unmarshal(text, &js) != nil || js.Kind != "JobSet" {
			continue
		}
		checked, err := jobsetCRD.check(text)
		if err != nil {
			return nil, fmt.Errorf("the JobSet that Trainer makes of it: %w", err)
		}
		js = jobset.JobSet{}
		return &js, decode(checked, &js, crdFile{})
	}
	return nil, errors.New("Trainer makes no JobSet of it")
}

// indexes takes the indexes that Trainer asks for; none is needed to build one object.
type indexes struct{}

func (indexes) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}
