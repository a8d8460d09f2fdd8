// Package archtest checks the structure of this module: imports point downward only, public
// packages mention no internal type, and the package that cells import stays light, so that a cell
// links fast. Its tests fail with the reason.
package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/graphnb/graphnb"

// cuModule is the module that calls the GPU's driver; only cuArea may import it.
const (
	cuModule = "gorgonia.org/cu"
	cuArea   = "internal/cuda"
)

// arrowModule is large, so a program gets it from arrowAreas alone.
const arrowModule = "github.com/apache/arrow-go"

var arrowAreas = []string{"gnb/flight", "gnb/tables"}

// area is one part of the module. Its packages may import those of areas further down the list, and
// each other.
type area struct {
	dir  string // below the module's root
	what string
}

// areas is the module from top to bottom; a package belongs to the area with the longest directory
// that holds it.
var areas = []area{
	{"bench", "measurements of everything"},
	{"docker", "the images, and the one install script"},
	{"tutorials", "one notebook per reference workload"},
	{"internal/testkit", "suites, references and helpers of tests"},
	{"gnb/cmd", "the command line"},
	{"gnb/sweep", "searching hyper-parameters"},
	{"gnb/scaling", "scaling curves"},
	{"gnb/inspect", "a dataset, and one batch, under the microscope"},
	{"gnb/deploy", "a trained run on a machine that answers"},
	{"gnb/answer", "predictions over HTTP"},
	{"gnb/explain", "why an answer is as it is"},
	{"gnb/onnx", "networks of runs as ONNX models"},
	{"gnb/predict", "answers for single nodes, in memory"},
	{"gnb/report", "how good a model is, and where it errs"},
	{"gnb/parts", "datasets divided into parts"},
	{"gnb/kg", "training on knowledge graphs"},
	{"gnb/events", "training on events in time"},
	{"gnb/graphs", "training that predicts labels and numbers of whole graphs"},
	{"gnb/numbers", "training that predicts numbers of nodes and edges"},
	{"gnb/links", "training that predicts links"},
	{"gnb/budget", "a sampler with budgets of nodes by type"},
	{"gnb/flight", "graphs as Arrow tables"},
	{"gnb/tables", "datasets of tables"},
	{"gnb/history", "graphs of events of repositories"},
	{"gnb/serve", "graph servers"},
	{"gnb/remote", "their clients"},
	{"gnb", "the notebook API"},
	{"gnb/plan", "what a run takes, predicted"},
	{"gnb/internal/recorder", "the panel and the result of a run, of its events"},
	{"gnb/internal/saving", "checkpoints and best weights of a run"},
	{"gnb/runs", "what a run leaves, and how it is found again"},
	{"gnb/figure", "pictures of one's own numbers"},
	{"gnb/monitor", "GPUs and host over time"},
	{"gnb/internal", "parts of the training loop, each readable alone"},
	{"gnb/internal/boards", "panels of sweeps, scaling curves and batches, from plain values"},
	{"gnb/internal/live", "panels of runs and machines, from plain values"},
	{"gnb/internal/screen", "writing to a cell, a terminal or a pipe"},
	{"gnb/internal/chart", "axes, curves, labels and colours of pictures"},
	{"multigpu", "worker processes"},
	{"internal/cuda", "an implementation of graphops' interfaces"},
	{"graphops", "the truth on the CPU"},
	{"internal/tabular", "text files of graphs"},
	{"graphops/dataset/columns", "what the columns of tables are"},
	{"graphops/dataset/notice", "what a reader of data did that its files do not say"},
	{"internal", "shared internals"},
	{"gnb/monitor/load", "the figures of a machine, which internals measure and users name"},
}

// sideBySide lists areas that must not import one another. Package numbers is below those that
// predict or report numbers too, and above links, whose batches of edges it takes.
var sideBySide = []string{"gnb/sweep", "gnb/scaling", "gnb/inspect", "gnb/report", "gnb/parts", "gnb/flight", "gnb/tables", "gnb/history", "gnb/serve", "gnb/remote", "gnb/links", "gnb/kg", "gnb/budget"}

// mayOnly lists areas that may import only the packages of the module named here, and each other's
// packages.
var mayOnly = map[string][]string{
	// nn for ModelConfig.
	"gnb/runs":            {"gnb/internal", "multigpu", "graphops/metrics", "graphops/nn", "graphops/safetensors", "internal"},
	"gnb/flight":          {"gnb/internal/bulk", "graphops", "internal"},
	"gnb/tables":          {"graphops", "internal"},
	"gnb/history":         {"graphops", "internal"},
	"gnb/serve":           {"gnb/internal/bulk", "graphops", "internal"},
	"gnb/remote":          {"gnb/internal/bulk", "graphops", "multigpu/cluster", "internal"},
	"gnb/internal/boards": {"gnb/internal/live", "gnb/internal/screen", "gnb/internal/chart", "internal"},
	"gnb/internal/live":   {"gnb/internal/screen", "gnb/internal/chart", "internal"},
	"gnb/internal/screen": {"gnb/internal/chart", "internal"},
	"gnb/internal/chart":  {"internal"},
}

// drawing lists the packages that show something; package gnb imports none of them.
var drawing = []string{"gnb/internal/boards", "gnb/internal/live", "gnb/internal/screen", "gnb/internal/chart"}

// userAreas lists the areas written like user code: of the module they may import only these packages.
var (
	userAreas = []string{"tutorials"}
	userMay   = []string{"gnb", "gnb/runs", "gnb/sweep", "gnb/scaling", "gnb/inspect", "gnb/monitor", "gnb/parts", "gnb/plan", "gnb/links", "gnb/kg", "gnb/events", "gnb/graphs", "gnb/numbers", "gnb/tables", "gnb/history", "gnb/report", "gnb/explain", "gnb/onnx", "gnb/predict", "gnb/deploy", "gnb/figure", "graphops/nn", "graphops/optim", "graphops/metrics"}
)

// heavy lists modules that package gnb must not reach, with the reason. They are compared with the
// start of an import path.
var heavy = []struct{ path, why string }{
	{arrowModule, "Arrow belongs in gnb/flight and gnb/tables"},
	{"google.golang.org/grpc", "gRPC belongs in gnb/serve and gnb/remote, a blank import where it is wanted"},
	{"google.golang.org/protobuf", "protobuf belongs in gnb/serve and gnb/remote"},
	{"github.com/golang/protobuf", "protobuf belongs in gnb/serve and gnb/remote"},
	{cuModule, "the GPU's driver is package cuda's, and under -tags cuda only"},
	{"github.com/ebitengine/purego", "libraries are loaded by cuda's own shim"},
	{"github.com/NVIDIA/go-nvml", "NVML runs in the helper process \"gnb monitor\""},
	{"codeberg.org/go-pdf/fpdf", "gonum.org/v1/plot links every format and font that it knows; package chart draws axes itself, over gonum's vg"},
	{"github.com/spf13/cobra", "the command line uses package flag"},
	{"gopkg.in/yaml", "settings are JSON"},
	{"sigs.k8s.io/yaml", "settings are JSON"},
	{"go.yaml.in/yaml", "settings are JSON"},
}

// Pkg holds the properties of a package that the checks need.
type Pkg struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// List runs "go list -json args…" in dir. The caller sets GOOS, GOARCH and build tags.
func List(dir string, args ...string) ([]Pkg, error) {
	out, err := GoList(dir, append([]string{"-json=ImportPath,Imports,Standard"}, args...)...)
	if err != nil {
		return nil, err
	}
	var pkgs []Pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

// GoList returns the output of "go list args…" in dir; after a failure, the error includes its
// messages.
func GoList(dir string, args ...string) ([]byte, error) {
	c := exec.Command("go", append([]string{"list"}, args...)...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// areaOf returns the index of the area that the package is in, or -1. rel is its path below the module.
func areaOf(rel string) int {
	best := -1
	for i, r := range areas {
		if (rel == r.dir || strings.HasPrefix(rel, r.dir+"/")) && (best < 0 || len(r.dir) > len(areas[best].dir)) {
			best = i
		}
	}
	return best
}

// Direction returns one sentence for each import that does not point downward, for each import of
// the GPU driver's module or of Arrow outside its area, and for each package that is in no area.
func Direction(module string, pkgs []Pkg) []string {
	var wrong []string
	for _, p := range pkgs {
		rel, inside := strings.CutPrefix(p.ImportPath, module+"/")
		if !inside {
			continue
		}
		from := areaOf(rel)
		if from < 0 {
			wrong = append(wrong, fmt.Sprintf("%s is in no area; move it, or add its area to archtest and ARCHITECTURE.md", rel))
			continue
		}
		for _, imported := range p.Imports {
			if imported == cuModule && areas[from].dir != cuArea {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only packages of %s speak with the GPU's driver", rel, cuModule, cuArea))
			}
			if strings.HasPrefix(imported, arrowModule) && !slices.Contains(arrowAreas, areas[from].dir) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only packages of %s use Arrow", rel, imported, strings.Join(arrowAreas, " and ")))
			}
			to, inside := strings.CutPrefix(imported, module+"/")
			if !inside {
				continue
			}
			if r := areaOf(to); r >= 0 && r < from {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s (%s) sits below %s (%s), and imports point downward only; what both need belongs in the lower one",
					rel, to, areas[from].dir, areas[from].what, areas[r].dir, areas[r].what))
			}
			if r := areaOf(to); r >= 0 && r != from && slices.Contains(sideBySide, areas[from].dir) && slices.Contains(sideBySide, areas[r].dir) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: areas above package gnb do not import each other; what both need belongs in gnb or below", rel, to))
			}
			if areas[from].dir == "gnb" && slices.Contains(drawing, to) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: training draws nothing itself; package recorder does", rel, to))
			}
			if may, ok := mayOnly[areas[from].dir]; ok && areaOf(to) != from && !slices.ContainsFunc(may, func(dir string) bool { return to == dir || strings.HasPrefix(to, dir+"/") }) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s (%s) imports %s only", rel, to, areas[from].dir, areas[from].what, strings.Join(may, ", ")))
			}
			if slices.Contains(userAreas, areas[from].dir) && !slices.Contains(userMay, to) && to != rel && areaOf(to) != from {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s is written as a user would write it, with %s only",
					rel, to, areas[from].dir, strings.Join(userMay, ", ")))
			}
		}
	}
	return wrong
}

// Weight returns one sentence for each heavy module among deps, with the chain of imports that
// leads to it from root.
func Weight(root string, deps []Pkg) []string {
	var wrong []string
	for _, h := range heavy {
		for _, p := range deps {
			if strings.HasPrefix(p.ImportPath, h.path) {
				wrong = append(wrong, fmt.Sprintf("%s reaches %s, which makes every cell link slowly: %s (%s)",
					path.Base(root), p.ImportPath, h.why, strings.Join(chain(root, p.ImportPath, deps), " > ")))
				break // report only one package of a module
			}
		}
	}
	return wrong
}

// chain returns a shortest chain of imports from one package to another.
func chain(from, to string, deps []Pkg) []string {
	imports := map[string][]string{}
	for _, p := range deps {
		imports[p.ImportPath] = p.Imports
	}
	via := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var c []string
			for p := to; p != ""; p = via[p] {
				c = append(c, p)
			}
			slices.Reverse(c)
			return c
		}
		for _, next := range imports[queue[0]] {
			if _, seen := via[next]; !seen {
				via[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return []string{from, "…", to}
}
