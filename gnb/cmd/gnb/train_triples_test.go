package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// gnb train --task links trains on triples if the decoder scores triples.
func TestTrainTriples(t *testing.T) {
	testneed.NotShort(t, "it trains")
	dir := t.TempDir()
	src := filepath.Join(dir, "family")
	if err := os.Mkdir(src, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"train.txt": "ann\tmother\tbob\nbob\tchild\tann\nann\tmother\teve\neve\tchild\tann\ndan\tfather\teve\n", "valid.txt": "eve\tchild\tdan\n", "test.txt": "dan\tfather\tbob\n",
	} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	result(t, dir, "data", "convert", src, data, "--json")
	_, got := result(t, dir, "train", data, "--task", "links", "--decoder", "complex", "--dim", "4", "--epochs", "3", "--eval-every", "1", "--smoothing", "0", "--json")
	has(t, got, "val_mrr", "test_mrr", "test_hits_1", "test_hits_10", "test_mean_rank", "best_epoch")
}
