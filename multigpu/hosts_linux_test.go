package multigpu

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// startOnHosts starts ranks on hosts with torchrun's variables; place[r] is the host of rank r.
func startOnHosts(t *testing.T, w *clustertest.Network, place []int, jobs []testJob, more func(rank int) []string) []*rank {
	t.Helper()
	spec, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	local := map[int]int{}
	count := map[int]int{}
	for _, h := range place {
		count[h]++
	}
	var all []*rank
	for i, h := range place {
		r := &rank{cmd: w.Hosts[h].Command(os.Args[0]), lines: make(chan string, 100), ended: make(chan error, 1)}
		if r.cmd.Env == nil {
			r.cmd.Env = os.Environ()
		}
		r.cmd.Env = append(r.cmd.Env, envRanks+"="+string(spec), fmt.Sprint("RANK=", i), fmt.Sprint("WORLD_SIZE=", len(place)), fmt.Sprint("LOCAL_RANK=", local[h]), fmt.Sprint("LOCAL_WORLD_SIZE=", count[h]),
			"TORCHELASTIC_RUN_ID="+t.Name()+strconv.Itoa(os.Getpid()), "GNB_LAUNCHER=torchrun", "GOMAXPROCS=2", "MASTER_ADDR="+w.Hosts[place[0]].Addr, "MASTER_PORT=29500",
			"GNB_TOKEN=a secret of these tests")
		local[h]++
		if more != nil {
			r.cmd.Env = append(r.cmd.Env, more(i)...)
		}
		r.start(t)
		all = append(all, r)
	}
	return all
}

// Ranks on several hosts get the bits that workers started by the program get, for any placement.
func TestRanksOnHosts(t *testing.T) {
	testneed.Raced(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	own := collect(t, 4, testJob{Kind: "divide", Steps: 20})
	type placement struct {
		name     string
		place    []int
		machines [][]int // the launcher's ranks on each machine
	}
	placements := []placement{
		{"one on each", []int{0, 1}, [][]int{{0}, {1}}},
		{"two on each", []int{0, 0, 1, 1}, [][]int{{0, 1}, {2, 3}}},
		{"in turn", []int{0, 1, 0, 1}, [][]int{{0, 2}, {1, 3}}},
		{"1 and 3", []int{0, 1, 1, 1}, [][]int{{0}, {1, 2, 3}}},
	}
	if testneed.UnderRace() {
		placements = placements[2:3] // the others run the same code
	}
	for _, c := range placements {
		t.Run(c.name, func(t *testing.T) {
			sent, _ := w.Hosts[1].Counters()
			all := startOnHosts(t, w, c.place, []testJob{
				{Kind: "exercise"}, {Kind: "divide", Steps: 20}, {Kind: "rank facts"}, {Kind: "train", Steps: 50, Rank: -1},
			}, nil)
			for i, s := range waitRanks(t, all) {
				if s != 0 {
					t.Errorf("rank %d ended with %d: %s", i, s, all[i].stderr.String())
				}
			}
			got := results(t, all)
			if len(got) != 4 {
				t.Fatalf("%d results: %s", len(got), all[0].stderr.String())
			}
			for i, r := range got {
				if r.Err != "" {
					t.Errorf("job %d: %s", i, r.Err)
				}
			}
			for i, e := range got[1].Events {
				if string(e) != own[0] {
					t.Errorf("event %d has other bits than with workers that the program starts itself", i)
				}
			}
			ranks := make([][]int, 2)
			for _, e := range got[2].Events {
				var f rankFacts
				if err := json.Unmarshal(e, &f); err != nil {
					t.Fatal(err)
				}
				ranks[f.Machine] = append(ranks[f.Machine], f.Launcher)
				if f.Machines != 2 || f.Content != "content" || f.LocalWorld != len(c.machines[f.Machine]) {
					t.Errorf("%+v", f)
				}
			}
			for m := range ranks {
				if slices.Sort(ranks[m]); !reflect.DeepEqual(ranks[m], c.machines[m]) {
					t.Errorf("machine %d has the launcher's ranks %v, want %v", m, ranks[m], c.machines[m])
				}
			}
			now, _ := w.Hosts[1].Counters()
			if now-sent < 20*1003*4/2 {
				t.Errorf("only %d bytes went over the network", now-sent)
			}
		})
	}
}

// Ranks of other machines that have no token, or another one, are refused with an error that says
// so.
func TestTokensOfHosts(t *testing.T) {
	testneed.Raced(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	for _, c := range []struct{ name, first, second, want string }{
		{"none", "GNB_TOKEN=", "GNB_TOKEN=", "ranks on other machines must prove a token and none is set; set GNB_TOKEN or GNB_TOKEN_FILE"},
		{"another", "GNB_TOKEN=0123456789abcdef", "GNB_TOKEN=0123456789abcdeg", "it does not prove the token that rank 0 has"},
		{"none at rank 0", "GNB_TOKEN=", "GNB_TOKEN=0123456789abcdef", "it has a token and rank 0 has none"},
		{"insecure", "GNB_TOKEN=", "GNB_TOKEN=", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := startOnHosts(t, w, []int{0, 1}, []testJob{{Kind: "exercise"}}, func(rank int) []string {
				out := []string{c.first, "GNB_INSECURE=0"}
				if rank == 1 {
					out[0] = c.second
				}
				if c.name == "insecure" {
					out[1] = "GNB_INSECURE=1"
				}
				return out
			})
			if c.want == "" {
				waitRanks(t, all)
				if got := results(t, all); len(got) != 1 || got[0].Err != "" {
					t.Errorf("%+v", got)
				}
				return
			}
			status := waitRanks(t, all[1:])
			if text := all[1].stderr.String(); status[0] != 1 || !strings.Contains(text, c.want) {
				t.Errorf("rank 1 ended with %d: %s", status[0], text)
			}
			// Anyone can make rank 0 refuse a connection, so rank 0 says so and waits on.
			for end := time.Now().Add(30 * time.Second); !strings.Contains(all[0].stderr.String(), c.want) && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond) // rank 0 prints its message after it has refused rank 1
			}
			if text := all[0].stderr.String(); !strings.Contains(text, c.want) {
				t.Errorf("rank 0 has not named the refusal: %s", text)
			}
			_ = all[0].cmd.Process.Kill()
			waitRanks(t, all[:1])
			if text := all[0].stderr.String(); !strings.Contains(text, c.want) {
				t.Errorf("rank 0 printed %q", text)
			}
		})
	}
}

// If a rank on another host vanishes or fails, the error names that rank and not one that lost the
// connection to it.
func TestFailuresOnHosts(t *testing.T) {
	testneed.Raced(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	for what, want := range map[string]string{"kill": "ended without a word", "error": "the model has no layers", "panic": "index out of range"} {
		t.Run(what, func(t *testing.T) {
			all := startOnHosts(t, w, []int{0, 0, 1, 1}, []testJob{{Kind: "at step: " + what, Steps: 300, Step: 105, Rank: 2}}, nil)
			waitRanks(t, all)
			got := results(t, all)
			if len(got) != 1 || !strings.Contains(got[0].Err, "rank 2 (pid ") || !strings.Contains(got[0].Err, " on host2) failed at epoch ") || !strings.Contains(got[0].Err, want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If the network between the hosts is cut, the run ends on both sides within a bounded time, and
// the error names the rank.
func TestCutBetweenHosts(t *testing.T) {
	testneed.Raced(t, "it waits for ranks to notice a cut")
	w := clustertest.Hosts(t, 2)
	all := startOnHosts(t, w, []int{0, 0, 1, 1}, []testJob{{Kind: "announce", Steps: 1e6, Silent: 2 * time.Second}}, nil)
	awaitRunning(t, all)
	w.Hosts[1].Cut()
	start := time.Now()
	status := waitRanks(t, all)
	took := time.Since(start)
	w.Hosts[1].Join()
	got := results(t, all)
	if len(got) != 1 || !strings.Contains(got[0].Err, "on host2) failed at") || !strings.Contains(got[0].Err, "it is silent") {
		t.Errorf("%v %+v", status, got)
	}
	for i := 2; i < 4; i++ {
		if text := all[i].stderr.String(); status[i] != ExitLost || !strings.Contains(text, "because rank 0 (host1) is silent") {
			t.Errorf("rank %d ended with %d: %s", i, status[i], text)
		}
	}
	if took > 30*time.Second {
		t.Errorf("the end took %v", took)
	}
}
