package setup

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/watch"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "monitor" { // the doctor reads GPUs with this program, as with the command
		os.Exit(cli.Run(context.Background(), watch.Command, os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// runFor runs a command that consists of run and returns its exit status and output.
func runFor(t *testing.T, run func(context.Context, []string, *cli.Output) error, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	status = cli.Run(t.Context(), cli.Command{Name: "probe", Run: run}, args, &o, &e)
	return status, o.String(), e.String()
}
