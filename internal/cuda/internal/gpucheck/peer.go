package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed peer.py
var peerScript string

// peer is PyTorch Geometric's time for the same epochs on the same GPU.
type peer struct {
	Name    string    `json:"name"`
	Seconds []float64 `json:"epoch_seconds,omitempty"`
	Median  float64   `json:"median_seconds,omitempty"`
	Why     string    `json:"not_measured,omitempty"` // reason why there is no time
}

// pythons returns the candidates for a Python with PyTorch: that of the active environment, and the
// one on PATH.
func pythons() []string {
	var all []string
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		all = append(all, filepath.Join(env, "bin", "python3"))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p := filepath.Join(dir, "python3"); executable(p) {
			return append(all, p)
		}
	}
	return all
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// peers times PyTorch Geometric on a dataset's directory, with the first Python that has it.
func (c *checker) peers(name, data string, epochs int) (peer, error) {
	p := peer{Name: name + ", PyTorch Geometric", Why: "there is no Python here"}
	script := filepath.Join(c.scratch, "peer.py")
	if err := os.WriteFile(script, []byte(peerScript), 0o600); err != nil {
		p.Why = err.Error()
		return p, nil
	}
	var reasons []string
	for _, python := range pythons() {
		text, err := c.output(nil, 2*time.Minute, python, script, data, strconv.Itoa(epochs))
		if errors.Is(err, errTime) {
			return p, err
		}
		var r struct {
			Seconds []float64 `json:"epoch_seconds"`
			Version string    `json:"version"`
			Torch   string    `json:"torch"`
			Workers int       `json:"workers"`
			Why     string    `json:"why"`
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if e := json.Unmarshal([]byte(lines[len(lines)-1]), &r); e != nil {
			if err == nil {
				err = e
			}
			r.Why = fmt.Sprintf("%s: %v: %s", python, err, lines[len(lines)-1])
		}
		if len(r.Seconds) > 0 {
			p.Name = fmt.Sprintf("%s %s on PyTorch %s, %d sampling processes", p.Name, r.Version, r.Torch, r.Workers)
			p.Seconds, p.Median, p.Why = r.Seconds, median(r.Seconds), ""
			break
		}
		reasons = append(reasons, r.Why)
		p.Why = strings.Join(reasons, "; ")
	}
	fmt.Printf("training of %s: epochs %.3f s %s\n", p.Name, p.Seconds, p.Why)
	return p, nil
}
