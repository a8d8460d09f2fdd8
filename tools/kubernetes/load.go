package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	strict "sigs.k8s.io/yaml"
)

// workload is a JobSet that a file makes a cluster run.
type workload struct {
	File   string
	Kind   string // of the object in the file: JobSet or TrainJob
	JobSet *jobset.JobSet
	Pods   []pod
	Claims []string // PersistentVolumeClaims that the file defines
}

// load reads and checks the objects of a file.
func load(file string) (out []*workload, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var runtimes []*trainer.ClusterTrainingRuntime
	var jobs []*trainer.TrainJob
	var claims []string
	documents := yaml.NewYAMLReader(bufio.NewReader(f))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var kind metav1.TypeMeta
		if err := strict.Unmarshal(text, &kind); err != nil {
			return nil, err
		}
		name := kind.APIVersion + " " + kind.Kind
		switch name {
		case "trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime":
			o := &trainer.ClusterTrainingRuntime{}
			if err = decode(text, o, trainerCRD("clustertrainingruntimes")); err == nil {
				runtimes = append(runtimes, o)
			}
		case "trainer.kubeflow.org/v1alpha1 TrainJob":
			o := &trainer.TrainJob{}
			if err = decode(text, o, trainerCRD("trainjobs")); err == nil {
				jobs = append(jobs, o)
			}
		case "jobset.x-k8s.io/v1alpha2 JobSet":
			o := &jobset.JobSet{}
			if err = decode(text, o, jobsetCRD); err == nil {
				out = append(out, &workload{Kind: kind.Kind, JobSet: o})
			}
		case "v1 PersistentVolumeClaim":
			o := &corev1.PersistentVolumeClaim{}
			if err = decode(text, o, crdFile{}); err == nil {
				claims = append(claims, o.Name)
			}
		default:
			err = errors.New("this tool does not know such objects")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, j := range jobs {
		js, err := build(context.Background(), j, runtimes)
		if err != nil {
			return nil, fmt.Errorf("TrainJob %s: %w", j.Name, err)
		}
		out = append(out, &workload{Kind: "TrainJob", JobSet: js})
	}
	if len(out) == 0 && len(claims) > 0 {
		out = append(out, &workload{Kind: "PersistentVolumeClaim"})
	}
	for _, w := range out {
		w.File, w.Claims = file, claims
		if w.JobSet != nil {
			if w.Pods, err = podsOf(w.JobSet); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// decode reads text into o, refusing unknown and repeated fields, and applies the defaults and the
// checks of the object's CRD, if it has one.
func decode(text []byte, o any, crd crdFile) error {
	if err := strict.UnmarshalStrict(text, o); err != nil {
		return err
	}
	if crd == (crdFile{}) {
		return nil
	}
	text, err := crd.check(text)
	if err != nil {
		return err
	}
	return strict.Unmarshal(text, o)
}
