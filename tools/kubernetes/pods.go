package main

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// pod is a pod of a JobSet, as its container sees it.
type pod struct {
	Job     string
	Host    string // its name in DNS: HOSTNAME.SUBDOMAIN
	Command []string
	Env     map[string]string
	Secrets map[string]string // variables whose values are in secrets, as SECRET/KEY
}

// podsOf lists the pods of a JobSet's jobs, with the environments of their first containers.
func podsOf(js *jobset.JobSet) (out []pod, err error) {
	subdomain := js.Name
	if js.Spec.Network != nil && js.Spec.Network.Subdomain != "" {
		subdomain = js.Spec.Network.Subdomain
	}
	for _, r := range js.Spec.ReplicatedJobs {
		job := r.Template.Spec
		// JobSet's webhook makes jobs indexed unless they say otherwise.
		if job.CompletionMode != nil && *job.CompletionMode != batchv1.IndexedCompletion {
			return nil, fmt.Errorf("the job %s is not indexed, so its pods have no ranks", r.Name)
		}
		if len(job.Template.Spec.Containers) != 1 {
			return nil, fmt.Errorf("a pod of the job %s has %d containers; this tool knows pods of one", r.Name, len(job.Template.Spec.Containers))
		}
		c := job.Template.Spec.Containers[0]
		for replica := range max(1, int(r.Replicas)) {
			for index := range int(*job.Completions) {
				host := fmt.Sprintf("%s-%s-%d-%d", js.Name, r.Name, replica, index)
				p := pod{Job: r.Name, Host: host + "." + subdomain, Command: append(append([]string{}, c.Command...), c.Args...), Env: map[string]string{"JOB_COMPLETION_INDEX": strconv.Itoa(index)}, Secrets: map[string]string{}}
				for _, e := range c.Env {
					if err := p.set(e, index); err != nil {
						return nil, err
					}
				}
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// indexField is where a pod of an indexed job finds its number.
const indexField = "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"

// set adds one variable.
func (p *pod) set(e corev1.EnvVar, index int) error {
	switch from := e.ValueFrom; {
	case from == nil && strings.Contains(e.Value, "$("):
		return fmt.Errorf("the variable %s refers to another one, which this tool does not expand", e.Name)
	case from == nil:
		p.Env[e.Name] = e.Value
	case from.FieldRef != nil && from.FieldRef.FieldPath == indexField:
		p.Env[e.Name] = strconv.Itoa(index)
	case from.SecretKeyRef != nil:
		p.Secrets[e.Name] = from.SecretKeyRef.Name + "/" + from.SecretKeyRef.Key
	default:
		return fmt.Errorf("the variable %s comes from a source that this tool does not know", e.Name)
	}
	return nil
}
