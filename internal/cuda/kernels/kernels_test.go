package kernels

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// The committed PTX records the sums of the current sources. This test needs no compiler;
// TestRebuild does.
func TestSources(t *testing.T) {
	sources, _ := filepath.Glob("*.cu")
	if len(sources) != len(Modules()) {
		t.Errorf("there are %d sources and %d modules; run make kernels", len(sources), len(Modules()))
	}
	for _, m := range Modules() {
		sum := sha256.New()
		headers := included(t, m.Name+".cu")
		slices.Sort(headers)
		for _, file := range append(slices.Compact(headers), m.Name+".cu") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		if got := fmt.Sprintf("%x", sum.Sum(nil)); got != m.Sources {
			t.Errorf("%s.ptx is not compiled from the current %s.cu and %q; run make kernels", m.Name, m.Name, headers)
		}
	}
}

// included returns the headers that a file includes, directly and through other headers.
func included(t *testing.T, file string) (headers []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range regexp.MustCompile(`(?m)^#include "(.*)"`).FindAllStringSubmatch(string(text), -1) {
		headers = append(append(headers, h[1]), included(t, h[1])...)
	}
	return headers
}

// Compiling the sources gives the committed PTX, within the limits of registers, spills and shared
// memory. Compiling all kernels for several GPUs takes a minute, so the test does it only if a file
// has changed since scripts/kernels.sh succeeded, or with GNB_SOAK=1.
func TestRebuild(t *testing.T) {
	recorded, err := os.ReadFile("built.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(recorded)) == everything(t) && !testneed.Soak.Here() {
		return
	}
	if testing.Short() {
		t.Fatal("internal/cuda/kernels has changed since it was compiled; run make kernels")
	}
	out, err := exec.Command("bash", "../../../scripts/kernels.sh", "--check").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		testneed.Skip(t, testneed.Network, "%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// everything returns the sum that scripts/nvrtc.py records: a sum over the sums of the sources, the
// PTX, the limits, nvrtc.py and the compiler's version.
func everything(t *testing.T) string {
	t.Helper()
	var files []string
	for _, ext := range []string{"cu", "cuh", "ptx", "json"} {
		found, err := filepath.Glob("*." + ext)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	all := sha256.New()
	for _, file := range append(files, "../../../scripts/nvrtc.py", "../../../scripts/requirements-cuda.txt") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%x\n", sha256.Sum256(text))
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

// Sizes and indices of kernels have 64 bits; only parameters that are neither may have 32. A launch
// has at most maxGrid blocks, in one dimension, for any amount of work.
func TestLarge(t *testing.T) {
	numbers := regexp.MustCompile(`\b(?:u32|int) (\w+)[,)]`)
	allowed := []string{"step", "c3", "threshold"}
	for _, m := range Modules() {
		text, err := os.ReadFile(m.Name + ".cu")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range regexp.MustCompile(`(?s)KERNEL \w+\(.*?\)`).FindAllString(string(text), -1) {
			for _, p := range numbers.FindAllStringSubmatch(k, -1) {
				if !slices.Contains(allowed, p[1]) {
					t.Errorf("%s.cu: parameter %s has 32 bits in %q", m.Name, p[1], k)
				}
			}
		}
	}
	const many = 1 << 40
	for name, s := range map[string]Shape{
		"items": Items(many), "rounds": Rounds(many), "rows": Rows(many, 3), "tiled": Tiled(many, 100, 4), "warps": Warps(many),
		"transpose": Transpose(many, 7), "product": Product(many, 64, 1), "columns": Columns(many, 5), "losses": Losses(many, 5), "blocks": Blocks(many),
	} {
		if s.Grid != maxGrid || s.X*s.Y%32 != 0 || s.X*s.Y > Threads {
			t.Errorf("%s of 2^40: %+v", name, s)
		}
	}
	for n := range 70 {
		if s := Items(n); s.Grid*s.X*s.Y < n || n == 0 != (s.Grid == 0) || s.X*s.Y%32 != 0 {
			t.Errorf("%d items: %+v", n, s)
		}
		if s := Rows(n, 5); s.Grid*s.Y < n || s.X != 8 || s.X*s.Y%32 != 0 {
			t.Errorf("%d rows of 5: %+v", n, s)
		}
	}
}

// Lookup finds every kernel that a source defines, with the sizes of its parameters.
func TestNames(t *testing.T) {
	define := regexp.MustCompile(`(?m)^KERNEL (\w+)\(([^)]*)\)`)
	for _, m := range Modules() {
		text, err := os.ReadFile(m.Name + ".cu")
		if err != nil {
			t.Fatal(err)
		}
		defined := define.FindAllStringSubmatch(expand(t, string(text)), -1)
		if len(defined) != len(m.Kernels) || len(defined) == 0 {
			t.Errorf("%s.cu defines %d kernels and its PTX has %d", m.Name, len(defined), len(m.Kernels))
		}
		for _, d := range defined {
			k, ok := Lookup(d[1])
			if !ok || k.Module != m.Name {
				t.Errorf("kernel %s of %s.cu is not found", d[1], m.Name)
				continue
			}
			var want []int
			for _, p := range strings.Split(d[2], ",") {
				size := 8
				if p = strings.TrimSpace(p); regexp.MustCompile(`^(float|u32) \w+$`).MatchString(p) {
					size = 4
				}
				want = append(want, size)
			}
			if !slices.Equal(k.Params, want) {
				t.Errorf("kernel %s has parameters of %v bytes, want %v", k.Name, k.Params, want)
			}
			if !slices.Contains(Names(), k.Name) {
				t.Errorf("%s is not among the names", k.Name)
			}
		}
	}
	if _, ok := Lookup("no such kernel"); ok {
		t.Error("Lookup finds a kernel that does not exist")
	}
}

// expand replaces the macro PICK_ARGS in a source by its definition in pick.cuh.
func expand(t *testing.T, source string) string {
	header, err := os.ReadFile("pick.cuh")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`#define PICK_ARGS((?s:.*?))\n[^ ]`).FindStringSubmatch(string(header))
	if m == nil {
		t.Fatal("pick.cuh does not define PICK_ARGS")
	}
	return strings.ReplaceAll(source, "(PICK_ARGS", "("+strings.ReplaceAll(m[1], "\\\n", ""))
}

func TestParse(t *testing.T) {
	m := parse("x", "// no sum\n.visible .entry f(\n\t.param .u64 f_param_0,\n\t.param .f32 f_param_1\n)\n{}\n.entry g()\n{}")
	if m.Sources != "" || len(m.Kernels) != 2 || !slices.Equal(m.Kernels[0].Params, []int{8, 4}) || m.Kernels[1].Params != nil {
		t.Errorf("parse returns %+v", m)
	}
}

// The comment above each kernel, or the one at the head of its file, says how many bytes the kernel
// moves and how long an H200's memory takes for them.
func TestArithmetic(t *testing.T) {
	kernel, block := regexp.MustCompile(`^KERNEL (\w+)\(`), regexp.MustCompile(`(?m)(?:^//.*\n)+`)
	bytes, time := regexp.MustCompile(`[Bb]ytes`), regexp.MustCompile(`\d (ns|µs|ms)\b`)
	for _, m := range Modules() {
		text, err := os.ReadFile(m.Name + ".cu")
		if err != nil {
			t.Fatal(err)
		}
		comments := block.FindAllIndex(text, -1)
		for _, k := range regexp.MustCompile(`(?m)^KERNEL \w+\(`).FindAllIndex(text, -1) {
			said := string(text[comments[0][0]:comments[0][1]])
			for _, c := range comments[1:] {
				if c[1] <= k[0] {
					said = string(text[comments[0][0]:comments[0][1]]) + string(text[c[0]:c[1]])
				}
			}
			if !bytes.MatchString(said) || !time.MatchString(said) {
				t.Errorf("%s.cu: no comment says how many bytes %s moves, and how long that takes at 4.8 TB/s: %q", m.Name, kernel.FindSubmatch(text[k[0]:])[1], said)
			}
		}
	}
}
