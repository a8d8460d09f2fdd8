package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The command's plan is the plan of a run with the same flags.
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	_, p := result(t, dir, "plan", "planted?nodes=2000", "--fanout", "5,4", "--batch", "100", "--workers", "2", "--hidden", "8")
	if p["batch"] != 100.0 || p["workers"] != 2.0 || p["model"] != "sage" || p["total_bytes"].(float64) < 2*p["worker_bytes"].(float64) || p["step_seconds"].(float64) <= 0 || p["fit"] != "fits" {
		t.Errorf("%v", p)
	}
	if hops := p["hops"].([]any); len(hops) != 2 || hops[0].(map[string]any)["destinations"] != 50.0 {
		t.Errorf("hops %v: want 50 seeds, a worker's share", hops)
	}
	if status, out, err := gnbRun(t, dir, "plan", "planted?nodes=2000"); status != 0 || !strings.Contains(out, "ways to run") {
		t.Errorf("status %d, %s%s", status, out, err)
	}
	_, p = result(t, dir, "plan", "planted?nodes=2000", "--fanout", "5,4", "--workers", "2", "--gpu-memory", "1GB")
	if gpu, _ := p["gpu"].(map[string]any); p["step_seconds"] != 0.0 || gpu["fit"] != "fits" || gpu["free"] != float64(1<<30) || gpu["limit"] != 0.75*(1<<30) || len(gpu["parts"].([]any)) < 7 {
		t.Errorf("a plan for GPUs says %v", p)
	}
	for _, text := range []string{"much", "0", "-1GB"} {
		if status, _, err := gnbRun(t, dir, "plan", "karate", "--gpu-memory", text); status == 0 || !strings.Contains(err, "such as 24GB") {
			t.Errorf("--gpu-memory %s: status %d, %s", text, status, err)
		}
	}
	if status, _, err := gnbRun(t, dir, "plan", "karate", "--gpu-memory", "1GB", "--device", "cpu"); status == 0 || !strings.Contains(err, "leave Device out") {
		t.Errorf("status %d, %s", status, err)
	}
	if status, _, err := gnbRun(t, dir, "plan", "karate", "--model", "nope"); status == 0 || !strings.Contains(err, "nope") {
		t.Errorf("status %d, %s", status, err)
	}
}

// Between two hosts, a link of 400 Mbit/s with a delay of 2 ms in each direction is measured as such, or slower on a busy machine.
func TestNetworkOfHosts(t *testing.T) {
	testneed.NotShort(t, "it makes hosts")
	exe := command(t)
	w := clustertest.HostsOver(t, 2, clustertest.Link{Delay: 2 * time.Millisecond, Rate: 400e6})
	at := w.Hosts[0].Addr + ":7744"
	other := w.Hosts[0].Command(exe, "bench", "network", "--listen", at, "--json")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	if lines := bufio.NewScanner(out); !lines.Scan() {
		t.Fatal("it does not listen")
	}
	text, err := w.Hosts[1].Command(exe, "bench", "network", "--connect", at, "--json").Output()
	var n struct {
		Rate float64 `json:"bytes_per_second"`
		Trip float64 `json:"round_trip_seconds"`
	}
	if err != nil || json.Unmarshal(text, &n) != nil || n.Trip < 0.004 || n.Trip > 1 || n.Rate > 1.1*400e6/8 || n.Rate < 1e5 {
		t.Errorf("%s, %v", text, err)
	}
	t.Logf("%s", text)
}

// A plan measures the network to another process, which answers until an interrupt; one that does not answer is a sentence.
func TestPlanMeasuresNetwork(t *testing.T) {
	other := exec.Command(command(t), "bench", "network", "--listen", "127.0.0.1:0", "--json")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill() })
	var listens struct{ Event, Address string }
	lines := bufio.NewScanner(out)
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &listens) != nil || listens.Event != "listening" {
		t.Fatalf("it says %q", lines.Text())
	}
	dir := t.TempDir()
	_, p := result(t, dir, "plan", "planted?nodes=2000", "--fanout", "5,4", "--workers", "2", "--machines", "2", "--network", "measure:"+listens.Address)
	n, _ := p["network"].(map[string]any)
	if rate, _ := n["bytes_per_second"].(float64); !(rate > 1e5) {
		t.Errorf("the network is %v", n)
	}
	if trip, _ := n["round_trip_seconds"].(float64); !(trip > 0 && trip < 10) {
		t.Errorf("the network is %v", n)
	}
	_, r := result(t, dir, "bench", "network", "--connect", listens.Address)
	if text, _ := r["text"].(string); !strings.Contains(text, "bit/s,") {
		t.Errorf("%v", r)
	}
	if err := other.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // an interrupt may be its status
	for _, args := range [][]string{
		{"plan", "karate", "--network", "measure:" + listens.Address},
		{"plan", "karate", "--network", "measure:"},
		{"bench", "network"},
		{"bench", "network", "--listen", "nowhere:x"},
		{"bench", "network", "--listen", ":0", "--connect", listens.Address},
	} {
		if status, _, err := gnbRun(t, dir, args...); status == 0 || err == "" || strings.Contains(err, "goroutine") {
			t.Errorf("%q: status %d, %s", args, status, err)
		}
	}
}
