package relink

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cell that imports packages of this checkout is changed and built, with "go build" and without it.
// bench/notes/kernel.md has the medians.
func BenchmarkBuild(b *testing.B) {
	const library = "github.com/graphnb/graphnb"
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}}", library+"/gnb/...").Output()
	if err != nil {
		b.Fatal(err)
	}
	heavy := []string{"remote", "serve", "published", "flight", "tables"}
	var light []string
	for _, p := range strings.Fields(string(list)) {
		rel := strings.TrimPrefix(p, library+"/gnb")
		if !strings.Contains(rel+"/", "/internal/") && !strings.Contains(rel+"/", "/cmd/") && !slices.ContainsFunc(heavy, func(h string) bool { return strings.HasPrefix(rel+"/", "/"+h+"/") }) {
			light = append(light, p)
		}
	}
	checkout, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "..", ".."))
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("GOFLAGS", "-trimpath -ldflags=-s -tags=grpcnotrace")
	b.Setenv("GOGC", "400")
	with := func(names ...string) []string {
		paths := slices.Clone(light)
		for _, n := range names {
			paths = append(paths, library+"/gnb/"+n)
		}
		return paths
	}
	for _, set := range []struct {
		name    string
		imports []string
	}{
		{"gnb", []string{library + "/gnb"}},
		{"light", with()},
		{"remote", with(heavy[:3]...)},
		{"flight", with(heavy[:4]...)},
		{"every", with(heavy...)},
	} {
		name := fmt.Sprintf("gonb_%d", time.Now().UnixNano())
		dir := filepath.Join(b.TempDir(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for file, text := range map[string]string{
			"go.mod":  "module " + name + "\n\ngo 1.26.0\n",
			"go.work": "go 1.26.0\n\nuse (\n\t.\n\t" + checkout + "\n)\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		build := func(b *testing.B, run func(cmd *exec.Cmd, out string) ([]byte, error)) {
			n++
			text := "package main\n\nimport (\n\t\"context\"\n\t\"flag\"\n\t\"fmt\"\n\n"
			for _, p := range set.imports[1:] {
				text += fmt.Sprintf("\t_ %q\n", p)
			}
			text += fmt.Sprintf("\t%q\n)\n\nfunc main() {\n\tflag.Parse()\n\tfmt.Println(gnb.Must(gnb.Load(context.Background(), \"karate\")), %d)\n}\n", set.imports[0], n)
			if err := os.WriteFile(filepath.Join(dir, mainGo), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			out := filepath.Join(dir, name)
			cmd := exec.Command("go", "build", "-o", out)
			cmd.Dir = dir
			if text, err := run(cmd, out); err != nil {
				b.Fatalf("%v: %s", err, text)
			}
		}
		for _, way := range []struct {
			name string
			run  func(cmd *exec.Cmd, out string) ([]byte, error)
		}{
			{"go", func(cmd *exec.Cmd, _ string) ([]byte, error) { return cmd.CombinedOutput() }},
			{"relink", Build},
		} {
			b.Run(set.name+"/"+way.name, func(b *testing.B) {
				build(b, way.run) // the first makes the record
				var wall, cpu []float64
				for b.Loop() {
					start, used := time.Now(), processor(b)
					build(b, way.run)
					wall, cpu = append(wall, time.Since(start).Seconds()), append(cpu, (processor(b)-used).Seconds())
				}
				slices.Sort(wall)
				slices.Sort(cpu)
				b.ReportMetric(wall[len(wall)/2], "median-s")
				b.ReportMetric(cpu[len(cpu)/2], "median-cpu-s")
			})
		}
	}
}

// processor returns the processor time of this process and its children.
func processor(b *testing.B) time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return sum
}
