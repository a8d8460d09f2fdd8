package cluster

import (
	"strings"
	"testing"
)

func TestIsTorchrun(t *testing.T) {
	for command, want := range map[string]bool{
		"/opt/venv/bin/python3 /opt/venv/bin/torchrun --nnodes=2 train.py": true,
		"/usr/bin/torchrun train.py":                                       true,
		"python -u -m torch.distributed.run --nproc-per-node 2 train.py":   true,
		"python3 -m torch.distributed.launch train.py":                     true,
		"python3 -m pytest torchrun":                                       false,
		"/bin/bash run.sh torchrun":                                        false,
		"python3 train.py -m torch.distributed.run":                        false,
		"/home/me/bin/gnb " + OnHost:                                       true,
		"/home/me/bin/gnb train " + OnHost:                                 false,
		"-bash":                                                            false,
		"":                                                                 false,
	} {
		if got := isTorchrun(strings.Split(command, " ")); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
}
