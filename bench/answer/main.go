// Command answer loads a server of predictions (gnb serve-model) with requests at fixed times, whether it keeps up or not (open loop),
// and prints the times from the moment at which each was due to the end of its answer.
//
//	go run ./bench/answer --rate 1000 --seconds 60 --nodes 169343 http://127.0.0.1:7800
//	go run ./bench/answer --rate 200 --new 10 --features 128 --nodes 169343 http://127.0.0.1:7800
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	rate := flag.Float64("rate", 1000, "requests per second")
	seconds := flag.Float64("seconds", 60, "how long")
	nodes := flag.Int("nodes", 1, "the dataset's nodes; each request asks for a random one, by its number")
	edges := flag.Int("new", 0, "ask for a new node with so many edges to known nodes")
	features := flag.Int("features", 0, "the features of a new node")
	seed := flag.Uint64("seed", 1, "of the nodes")
	flag.Parse()
	if flag.NArg() != 1 || *nodes < 1 || *rate <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	url := strings.TrimSuffix(flag.Arg(0), "/")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512}, Timeout: 30 * time.Second}
	n := int(*rate * *seconds)
	took, failed := make([]float64, n), make([]string, n)
	r := rand.New(rand.NewPCG(*seed, 0))
	var all sync.WaitGroup
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(float64(i) / *rate * float64(time.Second)))
		ask := request(url, r, *nodes, *edges, *features)
		time.Sleep(time.Until(due))
		all.Go(func() {
			failed[i] = send(client, ask)
			took[i] = time.Since(due).Seconds()
		})
	}
	all.Wait()
	whole := time.Since(start).Seconds()
	errs := map[string]int{}
	for _, f := range failed {
		if f != "" {
			errs[f]++
		}
	}
	slices.Sort(took)
	at := func(q float64) float64 { return 1e3 * took[min(int(q*float64(n)), n-1)] }
	out, _ := json.Marshal(map[string]any{
		"requests": n, "seconds": whole, "rate": float64(n) / whole, "failed": errs,
		"ms": map[string]float64{"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": at(1)},
	})
	fmt.Println(string(out))
	if len(errs) > 0 {
		os.Exit(1)
	}
}

// request returns the next request.
func request(url string, r *rand.Rand, nodes, edges, features int) *http.Request {
	if edges == 0 {
		q, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/v1/nodes?id=%d", url, r.IntN(nodes)), nil)
		must(err)
		return q
	}
	type edge struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	x := make([]float32, features)
	for i := range x {
		x[i] = float32(r.NormFloat64()) / 8
	}
	var to []edge
	seen := map[int]bool{}
	for len(to) < edges {
		if v := r.IntN(nodes); !seen[v] {
			seen[v] = true
			to = append(to, edge{"new", fmt.Sprint(v)})
		}
	}
	body, err := json.Marshal(map[string]any{"nodes": []any{map[string]any{"id": "new", "features": x}}, "edges": to})
	must(err)
	q, err := http.NewRequest(http.MethodPost, url+"/v1/new", strings.NewReader(string(body)))
	must(err)
	return q
}

// send returns what failed, "" for nothing.
func send(client *http.Client, q *http.Request) string {
	a, err := client.Do(q)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return err.Error()
	case a.StatusCode != http.StatusOK:
		return fmt.Sprintf("status %d: %.200s", a.StatusCode, body)
	}
	return ""
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
