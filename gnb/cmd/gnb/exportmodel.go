package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/deploy"
	"github.com/graphnb/graphnb/internal/phrase"
)

var (
	exportModelCommand = cli.Command{Name: "export-model", Summary: "write what answering needs of a run and its dataset", Run: runExportModel}
	buildServerCommand = cli.Command{Name: "build-server", Summary: "make one program of a trained run that answers", Run: runBuildServer}
)

const exportModelHelp = `
Writes a directory with what answering by a trained run needs, RUN or the last one, and nothing else: its weights, and of the
dataset the edges, the features, and the recipe and ids of its tables. Labels, splits, checkpoints and logs stay behind. gnb
serve-model, gnb predict, gnb explain and gnb build-server take the directory in place of RUN, with the same answers to the
bit; some are compared before the directory is complete. --out must not exist, or be empty, such as a volume's mount point.`

func runExportModel(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("[RUN] --out DIR", exportModelHelp)
	var o deploy.ExportOptions
	to := fs.String("out", "", "`directory` to write")
	given := subject{}.datasetFlag(fs, "export")
	exportFlags(fs, &o)
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if *to == "" {
		return cli.Usagef("--out is missing; name the directory to write")
	}
	e, err := export(ctx, out, nameOf(rest), *given, *to, o)
	if err != nil {
		return err
	}
	out.Printf("%s\n", e)
	if e.Compared > 0 {
		out.Printf("answers for %s compared: equal to the bit\n", phrase.Count(e.Compared, "node"))
	}
	out.Result(e)
	return nil
}

// nameOf is the run that arguments name, "" for the last one.
func nameOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// export exports a run with its dataset.
func export(ctx context.Context, out *cli.Output, name, given, to string, o deploy.ExportOptions) (*deploy.Exported, error) {
	run, ds, err := subject{}.open(ctx, out, name, given)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	report, end := cli.Progress(out)
	defer end()
	o.Progress = func(done, total int64) { report("write "+ds.Name(), "B", done, total) }
	return deploy.Export(ctx, run, ds, to, o)
}

const buildServerHelp = `
Makes one file of a trained run, or of a directory that gnb export-model wrote: a copy of this program with the model and the
graph inside. Copied to another machine, it serves at once (./app --listen ADDRESS), and answers (./app predict ID…); ./app --help says
more. It maps its own file and writes nothing, so the machine needs no dataset, no home directory and no
space. Without RUN or DIR it takes the last run.

For an empty container, or a machine with an older C library, the program must be static: a release is, or build gnb with
CGO_ENABLED=0. --program takes one for another machine.`

func runBuildServer(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags("[RUN|DIR] -o FILE", buildServerHelp)
	var (
		o       deploy.BuildOptions
		e       deploy.ExportOptions
		to      string
		fanouts ranks.Fanouts
	)
	fs.StringVar(&to, "out", "", "`file` to write")
	fs.StringVar(&to, "o", "", "the same as --out")
	fs.StringVar(&o.Program, "program", "", "gnb program to copy (default this one)")
	fs.Var(&fanouts, "fanout", "neighbours per hop that it draws: `10,10` (default full)")
	given := subject{}.datasetFlag(fs, "answer on")
	exportFlags(fs, &e)
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if to == "" {
		return cli.Usagef("-o is missing; name the file to write")
	}
	o.Fanout = fanouts.String()
	run, err := modelRun(ctx, nameOf(rest))
	if err != nil {
		return err
	}
	dir := run.Dir
	if !deploy.IsExported(run) || *given != "" || e.Final || e.FeatureType != "" {
		tmp, err := os.MkdirTemp(filepath.Dir(to), ".gnb-build-server-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "model")
		if _, err := export(ctx, out, nameOf(rest), *given, dir, e); err != nil {
			return err
		}
	}
	report, end := cli.Progress(out)
	o.Progress = func(done, total int64) { report("write "+to, "B", done, total) }
	b, err := deploy.Build(ctx, dir, to, o)
	end()
	if err != nil {
		return err
	}
	of := "static"
	if b.Loader != "" {
		of = fmt.Sprintf("needs %s and the C library", b.Loader)
	}
	out.Printf("%s: %s, of which the program is %s (%s)\n%s --listen 127.0.0.1:7800 serves run %s\n", to, phrase.Bytes(b.Bytes), phrase.Bytes(b.Program), of, runnable(to), run.Config.ID)
	out.Result(struct {
		*deploy.Built
		Run string `json:"run"`
	}{b, run.Config.ID})
	return nil
}

// runnable is a file as a shell runs it.
func runnable(file string) string {
	if filepath.Base(file) == file {
		return "./" + file
	}
	return file
}

// exportFlags makes the flags of an export.
func exportFlags(fs *flag.FlagSet, o *deploy.ExportOptions) {
	fs.BoolVar(&o.Final, "final", false, "the final weights instead of the best ones")
	fs.StringVar(&o.FeatureType, "feature-type", "", "`type` of features: f16 for half the size (default theirs)")
}
