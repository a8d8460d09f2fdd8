package entry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Ranks returns the number of ranks that a launcher has started, 0 without one. Each is a worker, so
// the option of a run, 0 for the default, may not ask for another number. A note, unless it is
// nil, says which library connects them.
func Ranks(workers int, note func(format string, args ...any)) (int, error) {
	p, err := multigpu.Launcher()
	switch {
	case err != nil:
		return 0, fmt.Errorf("gnb: %w", err)
	case p == nil:
		return 0, nil
	case workers > 0 && workers != p.World:
		return 0, fmt.Errorf("gnb: Workers is %d and %s has started %s; each is a worker, so leave Workers out, or start another number of them", workers, p.Launcher, phrase.Count(p.World, "rank"))
	}
	if library := p.Engine(); library != "" && note != nil {
		note("%s of %s, connected by %s", phrase.Count(p.World, "rank"), p.Launcher, library)
	}
	return p.World, nil
}

// Threads returns the number of threads of each of a run's workers: an even share of the CPUs among
// those on this machine, or of the CPUs that the control group's quota allows (GOMAXPROCS).
func Threads(workers int) int {
	if p, _ := multigpu.Launcher(); p != nil {
		return max(1, parallel.CPUs()/max(1, p.LocalWorld))
	}
	return max(1, runtime.GOMAXPROCS(0)/workers)
}

// meeting is what the first rank of a machine tells the others of it.
type meeting struct {
	Host string           `json:"host"`
	CPU  string           `json:"cpu"`
	Dir  string           `json:"dir"`
	Data *dataset.Digests `json:"data"` // nil unless every machine has files of its own
	Err  string           `json:"err"`
	Room string           `json:"room"` // why the run does not fit into the machine's memory
}

// Compare compares the class of the CPU between machines and, if each machine opened the dataset in
// a directory of its own, the datasets. The first rank of each machine but that of rank 0, which has done so before, calls room,
// which says why the run does not fit there. An error names the rank and what differs or does not fit, and is the same on all
// ranks. Collective if the ranks are on several machines.
func Compare(p *multigpu.Process, site collective.Site, ds *dataset.Dataset, files bool, cpu string, room func() error) error {
	if p.Machines == 1 {
		return nil
	}
	var mine []byte
	if p.LocalRank == 0 {
		m := meeting{Host: p.Host, CPU: cpu}
		if ds != nil && files {
			d, err := ds.Digests(context.Background(), nil)
			if m.Dir, m.Data = ds.Dir(), &d; err != nil {
				m.Err = err.Error()
			}
		}
		if p.Machine > 0 {
			if err := room(); err != nil {
				m.Room = phrase.Bare(err).Error()
			}
		}
		mine, _ = json.Marshal(m) // strings alone
	}
	all, err := p.Comm.AllGather(site, mine)
	if err != nil {
		return err
	}
	return differences(all)
}

// differences compares what the ranks sent with what rank 0 sent.
func differences(all [][]byte) error {
	var root meeting
	var small error // what differs is more important
	for rank, b := range all {
		if len(b) == 0 {
			continue
		}
		var m meeting
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("gnb: rank %d sent what cannot be read: %w", rank, err)
		}
		if rank == 0 {
			root = m
		}
		switch {
		case m.Err != "":
			return fmt.Errorf("gnb: rank %d (%s) cannot compare its dataset %s with rank 0's: %s", rank, m.Host, m.Dir, m.Err)
		case m.CPU != root.CPU:
			return fmt.Errorf("gnb: rank %d (%s) has a CPU of class %s and rank 0 (%s) one of class %s, whose sums differ in the last bits; start the ranks on machines of one class", rank, m.Host, m.CPU, root.Host, root.CPU)
		case m.Data != nil && root.Data != nil && *m.Data != *root.Data:
			return fmt.Errorf("gnb: rank %d (%s) has another dataset in %s than rank 0 (%s) in %s: its %s differ; copy the same files to every machine",
				rank, m.Host, m.Dir, root.Host, root.Dir, strings.Join(m.Data.Differences(*root.Data), " and "))
		case m.Room != "":
			small = cmp.Or(small, fmt.Errorf("gnb: on the machine of rank %d (%s), %s", rank, m.Host, m.Room))
		}
	}
	return small
}
