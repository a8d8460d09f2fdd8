package remote

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What no program has loaded for long is removed and, beyond a size, what was loaded longest ago, but nothing of the last
// day.
func TestTidy(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		most int64
		want []string
	}{
		"room for all":    {1000, []string{"days-2", "days-20", "hours-1", "hours-2"}},
		"room for three":  {350, []string{"days-2", "hours-1", "hours-2"}},
		"room for none":   {0, []string{"hours-1", "hours-2"}},
		"exactly for all": {400, []string{"days-2", "days-20", "hours-1", "hours-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			for name, age := range map[string]time.Duration{
				"hours-1": time.Hour, "hours-2": 2 * time.Hour, "days-2": 48 * time.Hour, "days-20": 20 * 24 * time.Hour,
				"days-40": 40 * 24 * time.Hour, "killed" + removing: 50 * 24 * time.Hour,
			} {
				dir := filepath.Join(above, name)
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "parts.npy"), make([]byte, 100), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(dir, now, now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			tidy(above, now, c.most)
			entries, err := os.ReadDir(above)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if !slices.Equal(left, c.want) {
				t.Errorf("left %v, want %v", left, c.want)
			}
		})
	}
}
