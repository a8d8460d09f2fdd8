// Command kubernetes checks manifests against the types, schemas and code that Kubeflow Trainer and
// JobSet publish, and prints the workloads that a cluster would run as JSON, each with the JobSet and
// its pods.
//
//	go -C tools/kubernetes run [-tags trainer] . FILE...
//
// Every object is decoded strictly into its Go type: an unknown field is an error. Objects of Trainer
// and JobSet are also checked against their CRD, including its CEL rules. With -tags trainer a TrainJob
// also passes Trainer's own validation, and Trainer's own code builds its JobSet, as its controller
// does; without the tag a TrainJob is printed without its JobSet. Not checked: JobSet's admission
// webhook, and Kubernetes' own validation of pods beyond the schema.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes FILE...")
		os.Exit(2)
	}
	out := []*workload{}
	for _, file := range os.Args[1:] {
		ws, err := load(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
		out = append(out, ws...)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
