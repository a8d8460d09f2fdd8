package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
)

// gnb train under srun, and with torchrun's variables on hosts joined by a network, has the
// samples, losses and weights of workers that gnb starts itself, for any division of the ranks. The
// bytes of the sums travel over the network.
func TestTrainUnderLaunchers(t *testing.T) {
	plain := command(t)
	want := trainRanks(t, exec.Command(plain), "--workers", "2", "--virtual-ranks", "4")
	same := func(t *testing.T, got trained) {
		t.Helper()
		if want.digest != got.digest || want.losses != got.losses || want.weights != got.weights {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	t.Run("srun", func(t *testing.T) {
		s := clustertest.Slurm(t)
		divisions := [][2]int{{2, 1}, {2, 2}} // nodes, and ranks on each
		if envknob.Soak.On() {
			divisions = append(divisions, [2]int{1, 8}, [2]int{2, 4}, [2]int{4, 2})
		}
		for _, d := range divisions {
			nodes, each := d[0], d[1]
			run := s.Command("srun", fmt.Sprintf("-N%d", nodes), fmt.Sprintf("-n%d", nodes*each), fmt.Sprintf("--ntasks-per-node=%d", each), plain)
			same(t, trainRanks(t, run, "--virtual-ranks", fmt.Sprint(8/(nodes*each))))
		}
	})
	splits := [][]int{{1, 1}, {3, 1}}
	if envknob.Soak.On() {
		splits = append(splits, []int{2, 2}, []int{1, 7}, []int{8}, []int{4, 4}, []int{2, 2, 2, 2}, []int{1, 1, 1, 1, 1, 1, 1, 1})
	}
	for _, split := range splits {
		t.Run(fmt.Sprintf("torchrun %v", split), func(t *testing.T) {
			n := 0
			for _, k := range split {
				n += k
			}
			w := clustertest.Hosts(t, len(split))
			same(t, trainRanks(t, w.Torchrun(split, plain), "--virtual-ranks", fmt.Sprint(8/n)))
			info, err := os.Stat(filepath.Join(want.dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			// Every host sends at least its share of each of the steps' gradient sums, whose
			// size is that of the weights.
			least := info.Size() * trainedSteps / int64(len(split)) / 2
			for _, h := range w.Hosts {
				if sent, received := h.Counters(); len(split) > 1 && (sent < least || received < least) {
					t.Errorf("%s has sent %d and received %d bytes, want at least %d", h.Name, sent, received, least)
				}
			}
		})
	}
}
