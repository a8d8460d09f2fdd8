package gnb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
)

// Load obtains a published dataset that is missing through the command on the PATH, reports its
// progress, and passes on its error.
func TestLoadGetsByTheCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_HOME", dir)
	t.Setenv("GNB_DATA", filepath.Join(dir, "none"))
	t.Setenv("PATH", dir)
	if _, err := gnb.Load(t.Context(), "cora"); err == nil || !strings.Contains(err.Error(), "data get cora") ||
		!strings.Contains(err.Error(), `import _ "github.com/graphnb/graphnb/gnb/published"`) || !strings.Contains(err.Error(), "GNB_DATA") {
		t.Errorf("without the command: %v, want an error that says how to get cora", err)
	}
	script := `#!/bin/sh
echo '{"event":"progress","stage":"download","file":"ind.cora.graph","done":10,"total":100}'
echo '{"event":"progress","stage":"convert","file":"","done":5,"total":5}'
echo '{"event":"error","error":"the network is away; put the files here"}'
exit 1
`
	if err := os.WriteFile(filepath.Join(dir, "gnb"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := gnb.Load(t.Context(), "cora"); err == nil || !strings.Contains(err.Error(), "the network is away") {
		t.Errorf("with a command that fails: %v, want its reason", err)
	}
}
