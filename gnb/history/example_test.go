package history_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/history"
)

// The history of two commits by one author, who changes two files and then one of them.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	repo := filepath.Join(dir, "repo")
	script := `git init -q repo && cd repo && echo a > a && echo b > b && git add -A && git commit -q -m one && echo c >> b && git commit -q -a -m two`
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := c.CombinedOutput(); err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	ds, err := history.Read(context.Background(), repo, filepath.Join(dir, "events"), history.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	fmt.Println(len(ds.Events), "events")
	// Output: 3 events
}
