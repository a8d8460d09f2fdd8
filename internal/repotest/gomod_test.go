package repotest

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// "go install github.com/graphnb/graphnb/gnb/cmd/gnb@VERSION" refuses a module whose go.mod has replace or exclude
// directives.
func TestModuleCanBeInstalled(t *testing.T) {
	c := exec.Command("go", "mod", "edit", "-json")
	c.Dir = "../.."
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Module           struct{ Path string }
		Exclude, Replace []any
	}
	if err := json.Unmarshal(out, &mod); err != nil || mod.Module.Path != "github.com/graphnb/graphnb" {
		t.Fatalf("go mod edit -json wrote (%v) %s", err, out)
	}
	if len(mod.Exclude)+len(mod.Replace) > 0 {
		t.Errorf("go.mod excludes %v and replaces %v", mod.Exclude, mod.Replace)
	}
}
