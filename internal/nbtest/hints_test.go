package nbtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cell's error explains what the compiler cannot know: variables of earlier cells, and misspelt packages of GraphNB. A
// package variable that a cell sets too late for its workers is warned of.
func TestErrorsOfCellsAreExplained(t *testing.T) {
	env := Setup(t)
	for name, c := range map[string]struct {
		cells []string
		want  string
	}{
		"variable of a cell": {[]string{"%%\nds := 41\nfmt.Println(ds)", "%%\nfmt.Println(ds + 1)"}, "ds was a variable among the statements of cell [1]"},
		"misspelt package":   {[]string{"import \"github.com/graphnb/graphnb/gnb/linsk\"\n\n%%\nfmt.Println(linsk.Train)"}, "did you mean \"github.com/graphnb/graphnb/gnb/links\""},
		"late variable": {
			[]string{"import \"github.com/graphnb/graphnb/gnb\"\n\nvar factor = 1\n\nvar Mine = gnb.Must(func() (int, error) { return factor, nil }())\n\n%%\nfactor = 2\nfmt.Println(Mine)\nos.Exit(1)"},
			"warning: this cell's statements set factor",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cells.ipynb")
			var cells []map[string]any
			for _, src := range c.cells {
				cells = append(cells, map[string]any{"cell_type": "code", "execution_count": nil, "metadata": map[string]any{}, "outputs": []any{}, "source": src})
			}
			b, err := json.Marshal(map[string]any{"cells": cells, "metadata": map[string]any{}, "nbformat": 4, "nbformat_minor": 4})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			r := env.Run(t, file, Options{})
			text := r.Failure
			for _, cell := range r.Cells {
				text += cell.Stderr
			}
			if r.Err() == nil || !strings.Contains(text, c.want) {
				t.Errorf("the cell says %q, want %q", text, c.want)
			}
		})
	}
}
