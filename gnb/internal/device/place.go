package device

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Place returns the number of workers of a run, the device that they use ("" is the CPU), and the number of ranks that a
// launcher has started. workers is what the run's options say, 0 for the default, mode their device, and cluster the
// number of ranks of a job to submit. The default is a worker for each GPU; a dataset in parts has the largest such number
// that divides its parts. parts is 0 for an undivided one. The cell's process opens no driver: it counts GPUs in /proc and /dev.
func Place(workers, cluster int, mode string, parts int, note func(format string, args ...any)) (n int, device string, ranks int, err error) {
	if cluster > 0 {
		if workers > 0 && workers != cluster {
			return 0, "", 0, fmt.Errorf("gnb: Workers is %d and Cluster has %d ranks; each is a worker, so leave Workers out", workers, cluster)
		}
		return cluster, strings.TrimPrefix(mode, "cpu"), 0, nil
	}
	ranks, err = entry.Ranks(workers, note)
	if err != nil {
		return 0, "", 0, err
	}
	gpus, why, err := Plan(mode, ranks > 0, note)
	if err != nil {
		return 0, "", 0, err
	}
	on := "the CPU"
	if gpus > 0 {
		on, device = "GPUs", mode
	}
	if workers+ranks > 0 {
		return cmp.Or(workers, ranks), device, ranks, nil
	}
	n, err = entry.Workers()
	switch {
	case err != nil:
		return 0, "", 0, err
	case n > 0:
		note("workers on %s: %d, as GNB_WORKERS says", on, n)
	case gpus == 1:
		n = 1
		note("1 worker, on the GPU.")
	case gpus > 1:
		for n = gpus; parts > 0 && parts%n != 0; n-- {
		}
		if n < gpus {
			note("%s on %d GPUs: the most that divide %d parts evenly.", phrase.Count(n, "worker"), gpus, parts)
			break
		}
		note("%d workers, one for each GPU. Set Workers for fewer.", n)
	default:
		n = 1
		if text := fmt.Sprintf("1 worker on the CPU: %s. Set Workers for more.", why); entry.FirstTime(text) {
			note("%s", text)
		}
	}
	return n, device, 0, nil
}
