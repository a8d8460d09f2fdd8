package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/partition"
)

var metisTime = regexp.MustCompile(`Partitioning:\s+([0-9.]+) sec`)

// metis divides a graph by gpmetis and returns the seconds that it reports.
func metis(g *graphops.Graph, parts int, kind string, o partition.Options) (*partition.Parts, float64, error) {
	dir, err := os.MkdirTemp("", "metis-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	weights := append([][]int32{o.Weights}, o.More...)
	in := filepath.Join(dir, "graph")
	if err := writeMetis(in, g.Undirected(0).RemoveSelfLoops(0), weights); err != nil {
		return nil, 0, err
	}
	allowed := o.Imbalance
	if kind == "rb" {
		allowed = math.Pow(1+o.Imbalance, 1/math.Ceil(math.Log2(float64(parts)))) - 1
	}
	text, err := exec.Command("gpmetis", "-ptype="+kind, "-seed="+strconv.FormatUint(o.Seed, 10),
		fmt.Sprintf("-ufactor=%d", max(1, int(1000*allowed+0.5))), in, strconv.Itoa(parts)).CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("gpmetis: %w: %s", err, text)
	}
	found := metisTime.FindSubmatch(text)
	if found == nil {
		return nil, 0, fmt.Errorf("gpmetis reported no time: %s", text)
	}
	seconds, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(fmt.Sprintf("%s.part.%d", in, parts))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	of := make([]int32, g.NumNodes())
	words := bufio.NewScanner(f)
	for v := range of {
		words.Scan()
		p, err := strconv.Atoi(words.Text())
		if err != nil {
			return nil, 0, err
		}
		of[v] = int32(p)
	}
	p := &partition.Parts{Of: of, Count: parts}
	for i, w := range weights {
		s, err := partition.Measure(context.Background(), g, of, parts, w, 0)
		if err != nil {
			return nil, 0, err
		}
		if i == 0 {
			p.Stats = s
		}
		p.Imbalances = append(p.Imbalances, s.Imbalance)
	}
	return p, seconds, nil
}

// writeMetis writes an undirected graph in METIS's format.
func writeMetis(path string, g *graphops.Graph, weights [][]int32) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, g.NumNodes(), g.NumEdges()/2, "010", len(weights))
	var line []byte
	for v := range int32(g.NumNodes()) {
		line = line[:0]
		for _, x := range weights {
			line = append(strconv.AppendInt(line, int64(x[v]), 10), ' ')
		}
		for _, u := range g.InNeighbors(v) {
			line = append(strconv.AppendInt(line, int64(u)+1, 10), ' ')
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}
