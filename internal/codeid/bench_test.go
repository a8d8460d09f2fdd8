package codeid

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// A long notebook, of 200 cells and 3,200 lines, is read anew in each iteration: this is what a
// process's first launch costs more than a launch without an identity.
func BenchmarkReach(b *testing.B) {
	dir := b.TempDir()
	var s strings.Builder
	s.WriteString("package main\n\nimport \"fmt\"\n\n")
	for i := range 200 {
		fmt.Fprintf(&s, "type T%[1]d struct{ a, b int }\n\nfunc (t *T%[1]d) Layer(x float64) float64 {\n\tfor i := range t.a {\n\t\tx += float64(i) * c%[1]d\n\t}\n\tfmt.Println(x, t.b)\n\treturn F%[1]d(x)\n}\n\nconst c%[1]d = %[1]d\n\nfunc F%[1]d(x float64) float64 {\n\tt := &T%[2]d{a: 1, b: 2}\n\treturn t.Layer(x)\n}\n\n",
			i, min(i+1, 199))
	}
	line := 1 + strings.Count(s.String(), "\n")
	s.WriteString("var run = F0\n")
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	p := newProgram(&debug.BuildInfo{Path: "example.com/u", Main: debug.Module{Path: "example.com/u"}}, Options{})
	p.notAfter = time.Now().Add(time.Hour)
	for b.Loop() {
		read.packages = nil
		parts, err := p.reach([]Root{root("main.init", file, line)})
		if err != nil || len(parts) != 798 {
			b.Fatalf("%d parts, %v", len(parts), err)
		}
	}
}
