package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cell is a program that imports only gnb.
const cell = "./internal/archtest/testdata/cell"

var root = filepath.Join("..", "..")

func TestImportsPointDownward(t *testing.T) {
	pkgs, err := List(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for _, w := range Direction(Module, pkgs) {
		t.Error(w)
	}
}

// With -tags cuda, imports follow the same rules. Without the tag, no package imports the driver's
// module, so a build is pure Go.
func TestImportsUnderCuda(t *testing.T) {
	tagged, err := List(root, "-tags=cuda", "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Direction(Module, tagged) {
		t.Error(w)
	}
	reaches := func(pkgs []Pkg) bool {
		return slices.ContainsFunc(pkgs, func(p Pkg) bool { return slices.Contains(p.Imports, cuModule) })
	}
	if !reaches(tagged) {
		t.Errorf("with -tags cuda no package imports %s; the test would check nothing", cuModule)
	}
	plain, err := List(root, "-deps", "./...")
	if err != nil {
		t.Fatal(err)
	}
	if reaches(plain) {
		t.Errorf("without -tags cuda a package imports %s", cuModule)
	}
}

func TestCellIsLight(t *testing.T) {
	deps, err := List(root, "-deps", cell)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Weight(Module+"/gnb", deps) {
		t.Error(w)
	}
	t.Logf("%d packages", len(deps))
}

// A cell that imports every public package links no heavy module either. Packages that exist for one
// (HTTP, gRPC, Arrow), encode tables or use gonum's matrices are left out.
func TestAreasAreLight(t *testing.T) {
	all, err := List(root, "./gnb/...")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-deps"}
	for _, p := range all {
		rel := strings.TrimPrefix(p.ImportPath, Module) + "/"
		if !strings.Contains(rel, "/internal/") && !strings.Contains(rel, "/cmd/") && !strings.Contains(rel, "/published/") &&
			!strings.Contains(rel, "/serve/") && !strings.Contains(rel, "/flight/") && !strings.Contains(rel, "/tables/") && !strings.Contains(rel, "/predict/") && !strings.Contains(rel, "/explain/") && !strings.Contains(rel, "/gnb/onnx/") && !strings.Contains(rel, "/answer/") && !strings.Contains(rel, "/deploy/") && !strings.Contains(rel, "/remote/") && !strings.Contains(rel, "/report/") {
			args = append(args, p.ImportPath)
		}
	}
	if len(args) < 6 {
		t.Fatalf("only the areas %q were found", args[1:])
	}
	deps, err := List(root, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Weight(Module+"/gnb/...", deps) {
		t.Error(w)
	}
	t.Logf("%d packages, with the areas %q", len(deps), args[1:])
}

// In a module with wrong imports, each wrong import is found with its reason, and nothing else is.
func TestPlantedViolationsAreFound(t *testing.T) {
	const module = "planted.test/m"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                      "module " + module + "\n\ngo 1.26.0\n",
		"internal/bits/bits.go":       "package bits\n",
		"graphops/graph.go":           "package graphops\n\nimport _ \"" + module + "/internal/bits\"\n",
		"graphops/nn/nn.go":           "package nn\n\nimport (\n\t_ \"" + module + "/graphops\"\n\t_ \"" + module + "/multigpu\"\n)\n",
		"multigpu/group.go":           "package multigpu\n",
		"gnb/internal/chart/chart.go": "package chart\n\nimport _ \"" + module + "/multigpu\"\n",
		"gnb/internal/live/live.go":   "package live\n\nimport _ \"" + module + "/multigpu\"\n",
		"gnb/runs/runs.go":            "package runs\n\nimport _ \"" + module + "/graphops\"\n",
		"gnb/gnb.go":                  "package gnb\n\nimport (\n\t_ \"" + module + "/gnb/internal/chart\"\n\t_ \"" + module + "/gnb/internal/live\"\n)\n",
		"gnb/cmd/gnb/main.go":         "package main\n\nimport _ \"" + module + "/gnb\"\n\nfunc main() {}\n",
		"internal/up/up.go":           "package up\n\nimport _ \"" + module + "/gnb/internal/live\"\n",
		"tutorials/reddit/main.go":    "package main\n\nimport (\n\t_ \"" + module + "/gnb\"\n\t_ \"" + module + "/multigpu\"\n)\n\nfunc main() {}\n",
		"attic/old.go":                "package attic\n",
		"internal/cuda/driver.go":     "package cuda\n\nimport _ \"gorgonia.org/cu\"\n",
		"graphops/gpu/gpu.go":         "package gpu\n\nimport (\n\t_ \"gorgonia.org/cu\"\n\t_ \"" + module + "/internal/cuda\"\n)\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pkgs, err := List(dir, "-e", "./...") // the driver's module is not available there
	if err != nil {
		t.Fatal(err)
	}
	got := Direction(module, pkgs)
	want := []string{
		"attic is in no area",
		"graphops/gpu imports gorgonia.org/cu: only packages of internal/cuda",
		"graphops/gpu imports internal/cuda: graphops",
		"graphops/nn imports multigpu: graphops",
		"gnb imports gnb/internal/chart: training draws nothing",
		"gnb imports gnb/internal/live: training draws nothing",
		"gnb/internal/live imports multigpu: gnb/internal/live (panels",
		"gnb/internal/chart imports multigpu: gnb/internal/chart (axes",
		"gnb/runs imports graphops: gnb/runs (what a run leaves",
		"internal/up imports gnb/internal/live: internal",
		"tutorials/reddit imports multigpu: tutorials is written as a user",
	}
	for _, w := range want {
		n := 0
		for _, g := range got {
			if strings.HasPrefix(g, w) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d findings start with %q, want 1", n, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d findings, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

func TestPlantedWeightIsFound(t *testing.T) {
	deps := []Pkg{
		{ImportPath: "m/gnb", Imports: []string{"m/multigpu", "fmt"}},
		{ImportPath: "m/multigpu", Imports: []string{"google.golang.org/grpc"}},
		{ImportPath: "google.golang.org/grpc"},
		{ImportPath: "fmt", Standard: true},
	}
	got := Weight("m/gnb", deps)
	if len(got) != 1 || !strings.Contains(got[0], "m/gnb > m/multigpu > google.golang.org/grpc") {
		t.Errorf("findings %q", got)
	}
	if got := Weight("m/gnb", deps[3:]); len(got) != 0 {
		t.Errorf("a program without heavy modules has the findings %q", got)
	}
}
