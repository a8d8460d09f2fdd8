// Command mutate measures how many small defects the tests of packages find.
//
//	go run ./internal/mutate [-n 20] [-seed 1] PACKAGE…
//
// It changes one operator at a time at places drawn at random (< becomes <=, + becomes -, && becomes ||, and so on), runs
// the quick tests of the package on it by the go command's overlay, so that no file changes, and lists the changes with
// which all tests pass: each is a line that no test looks at, or a change without effect. A change that does not build is
// drawn again.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// changes are the operators and what each becomes.
var changes = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.LAND: token.LOR, token.LOR: token.LAND,
}

// mutation is a change of one operator.
type mutation struct {
	pkg, file string
	line      int
	offset    int
	from, to  token.Token
}

func (m mutation) String() string {
	return fmt.Sprintf("%s:%d: %s becomes %s", m.file, m.line, m.from, m.to)
}

func main() {
	n := flag.Int("n", 20, "`number` of changes to try")
	seed := flag.Uint64("seed", 1, "seed of the drawn places")
	flag.Parse()
	if err := run(*n, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64, packages []string) error {
	if len(packages) == 0 {
		return fmt.Errorf("which packages? give some, such as ./graphops/sample")
	}
	out, err := exec.Command("go", append([]string{"list", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`}, packages...)...).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	var all []mutation
	for line := range strings.Lines(string(out)) {
		if pkg, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found, err := places(pkg, file)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var alive []mutation
	tried := 0
	for _, m := range all {
		if tried == n {
			break
		}
		built, found, err := try(m)
		if err != nil {
			return err
		}
		if !built {
			continue
		}
		if tried++; !found {
			alive = append(alive, m)
		}
		fmt.Printf("%d of %d: %v: %s\n", tried, n, m, map[bool]string{true: "found", false: "NOT FOUND"}[found])
	}
	fmt.Printf("\n%d of %d changes were found\n", tried-len(alive), tried)
	for _, m := range alive {
		fmt.Println("not found:", m)
	}
	return nil
}

// places returns the possible changes of a file.
func places(pkg, file string) (found []mutation, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if e, ok := n.(*ast.BinaryExpr); ok {
			if to, ok := changes[e.Op]; ok {
				at := set.Position(e.OpPos)
				found = append(found, mutation{pkg, file, at.Line, at.Offset, e.Op, to})
			}
		}
		return true
	})
	return found, nil
}

// apply returns the file's text with the change.
func (m mutation) apply(text []byte) []byte {
	end := m.offset + len(m.from.String())
	return slices.Concat(text[:m.offset], []byte(m.to.String()), text[end:])
}

// try runs the tests with a change: built is false if it does not compile, and found true if a test fails.
func try(m mutation) (built, found bool, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return false, false, err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err != nil {
		return false, false, err
	}
	for path, b := range map[string][]byte{changed: m.apply(text), overlay: raw} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return false, false, err
		}
	}
	flags := []string{"-overlay=" + overlay, "-vet=off"}
	if exec.Command("go", slices.Concat([]string{"build"}, flags[:1], []string{m.pkg})...).Run() != nil {
		return false, false, nil
	}
	test := exec.Command("go", slices.Concat([]string{"test"}, flags, []string{"-short", "-count=1", "-timeout=3m", m.pkg})...)
	return true, test.Run() != nil, nil
}
