package main

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
)

func TestOnMachines(t *testing.T) {
	for _, c := range []struct {
		workers, machines, perMachine int
		gpus                          bool
		device                        string
	}{{0, 0, 0, false, "auto"}, {2, 1, 0, false, "auto"}, {0, 2, 1, false, "cpu"}, {6, 2, 3, false, "cpu"}, {6, 3, 2, true, "auto"}} {
		o := gnb.LaunchOptions{Workers: c.workers, Device: "auto"}
		if err := onMachines(&o, c.machines, c.gpus); err != nil || o.Cluster.RanksPerNode != c.perMachine || o.Device != c.device {
			t.Errorf("%+v: %+v on %q (%v)", c, o.Cluster, o.Device, err)
		}
	}
	for _, machines := range []int{-1, 2} {
		o := gnb.LaunchOptions{Workers: 3}
		if err := onMachines(&o, machines, false); err == nil || !strings.Contains(err.Error(), "--workers 3") {
			t.Errorf("%d machines for 3 workers: %v", machines, err)
		}
	}
}
