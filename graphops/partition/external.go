package partition

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
)

// program is an installed program that divides graphs.
type program struct {
	names  []string // of the command; Debian has renamed some
	debian string   // the package
	write  func(w *bufio.Writer, g *weighted, weights bool)
	// args for the files in and out of a directory.
	args func(in, out string, parts int, o Options) []string
	read func(field func() (int, bool), of []int32)
}

// programs are the methods that run a program.
var programs = map[string]program{
	Metis: {[]string{"gpmetis"}, "metis", writeMetis, func(in, _ string, parts int, o Options) []string {
		return []string{"-seed=" + seed31(o.Seed), fmt.Sprintf("-ufactor=%d", max(1, int(1000*o.Imbalance))), in, strconv.Itoa(parts)}
	}, readMetis},
	Kahip: {[]string{"kaffpa"}, "kahip", writeMetis, func(in, out string, parts int, o Options) []string {
		preset := "eco"
		if o.Preset == Strong {
			preset = "strong"
		}
		return []string{
			in, "--k=" + strconv.Itoa(parts), "--seed=" + seed31(o.Seed), "--preconfiguration=" + preset,
			fmt.Sprintf("--imbalance=%g", 100*o.Imbalance), "--output_filename=" + out,
		}
	}, readMetis},
	Scotch: {[]string{"scotch_gpart", "gpart"}, "scotch", writeScotch, func(in, out string, parts int, o Options) []string {
		return []string{fmt.Sprintf("-b%g", o.Imbalance), strconv.Itoa(parts), in, out}
	}, readScotch},
}

// seed31 is a seed as these programs take it.
func seed31(seed uint64) string { return strconv.FormatUint(seed&(1<<31-1), 10) }

// external divides a graph by an installed program: it writes the graph to a temporary file, runs
// the program, and reads the parts. Cost in addition to the program's: an undirected copy of the
// graph, and a file of about 8 bytes per directed edge.
func external(ctx context.Context, g *graphops.Graph, parts int, o Options) ([]int32, error) {
	p := programs[o.Method]
	of := make([]int32, g.NumNodes())
	var path string
	for _, name := range p.names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, fmt.Errorf("method %q runs the program %s, which is not on PATH; install it, on Debian by \"apt install %s\", or choose another method", o.Method, p.names[len(p.names)-1], p.debian)
	}
	if parts == 1 {
		return of, nil
	}
	dir, err := os.MkdirTemp("", "gnb-partition-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "graph"), filepath.Join(dir, fmt.Sprintf("graph.part.%d", parts))
	m := &divider{ctx: ctx, parts: parts, o: o}
	if err := p.save(in, m.undirected(g), o.Weights != nil); err != nil {
		return nil, fmt.Errorf("writing the graph for %s: %w", path, err)
	}
	o.Progress(0.1)
	c := exec.CommandContext(ctx, path, p.args(in, out, parts, o)...)
	c.Dir = dir
	said := &tail{}
	c.Stdout, c.Stderr = said, said
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s failed: %w; it said: %s", path, err, said)
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, fmt.Errorf("%s ended without writing the parts; it said: %s", path, said)
	}
	defer f.Close()
	words := bufio.NewScanner(f)
	words.Split(bufio.ScanWords)
	for v := range of {
		of[v] = -1
	}
	p.read(func() (int, bool) {
		if !words.Scan() {
			return 0, false
		}
		x, err := strconv.Atoi(words.Text())
		return x, err == nil
	}, of)
	for v, q := range of {
		if q < 0 || int(q) >= parts {
			return nil, fmt.Errorf("%s wrote no part from 0 to %d for node %d", path, parts-1, v)
		}
	}
	return of, nil
}

func (p *program) save(path string, g *weighted, weights bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	p.write(w, g, weights)
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// writeMetis writes the format of METIS and KaHIP: a line for each node, ids from 1.
func writeMetis(w *bufio.Writer, g *weighted, weights bool) {
	fmt.Fprintf(w, "%d %d", g.nodes(), len(g.adj)/2)
	if weights {
		fmt.Fprint(w, " 10")
	}
	fmt.Fprintln(w)
	var line []byte
	for v := range g.nodes() {
		line = line[:0]
		if weights {
			line = append(strconv.AppendInt(line, g.node[v], 10), ' ')
		}
		for _, u := range g.adj[g.indptr[v]:g.indptr[v+1]] {
			line = append(strconv.AppendInt(line, int64(u)+1, 10), ' ')
		}
		_, _ = w.Write(append(line, '\n')) // Flush returns the first error
	}
}

// readMetis reads one part a line.
func readMetis(field func() (int, bool), of []int32) {
	for v := range of {
		p, ok := field()
		if !ok {
			return
		}
		of[v] = int32(max(-1, min(p, 1<<30)))
	}
}

// writeScotch writes Scotch's format: a line for each node with its weight and degree, ids from 0.
func writeScotch(w *bufio.Writer, g *weighted, weights bool) {
	flags := "000"
	if weights {
		flags = "001"
	}
	fmt.Fprintf(w, "0\n%d %d\n0 %s\n", g.nodes(), len(g.adj), flags)
	var line []byte
	for v := range g.nodes() {
		line = line[:0]
		if weights {
			line = append(strconv.AppendInt(line, g.node[v], 10), ' ')
		}
		line = strconv.AppendInt(line, g.indptr[v+1]-g.indptr[v], 10)
		for _, u := range g.adj[g.indptr[v]:g.indptr[v+1]] {
			line = strconv.AppendInt(append(line, ' '), int64(u), 10)
		}
		_, _ = w.Write(append(line, '\n'))
	}
}

// readScotch reads the number of nodes, and then a node and its part a line.
func readScotch(field func() (int, bool), of []int32) {
	if n, ok := field(); !ok || n != len(of) {
		return
	}
	for {
		v, ok := field()
		p, ok2 := field()
		if !ok || !ok2 || v < 0 || v >= len(of) {
			return
		}
		of[v] = int32(max(-1, min(p, 1<<30)))
	}
}

// tail keeps the end of a program's output.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 4096 {
		t.b = append(t.b[:0], t.b[len(t.b)-1024:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	b := bytes.Join(bytes.Fields(t.b), []byte(" "))
	return string(b[max(0, len(b)-500):])
}
