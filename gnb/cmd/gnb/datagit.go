package main

import (
	"context"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/history"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/temporal"
)

func runGit(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("git REPO DST", "Makes a graph of events of the history of the git repository that the directory REPO is, or is in, and writes it as the dataset directory DST: each file that a commit changes is an event from the commit's author to the file, at the author's time. Authors become numbers, and neither names nor addresses are stored; the ids of files are their paths. The command git is needed, and nothing that the repository configures is run.")
	var o history.Options
	fs.StringVar(&o.Name, "name", "", "`name` of the dataset (default DST's name)")
	fs.StringVar(&o.Ref, "ref", "", "`branch`, tag or commit to read (default HEAD)")
	fs.StringVar(&o.Since, "since", "", "first `moment` of events, such as 2024-05-01")
	fs.StringVar(&o.Until, "until", "", "last `moment` of events, such as 2024-05-01T12:00:00Z")
	fs.BoolVar(&o.Merges, "merges", false, "read merges, relative to their first parent")
	fs.BoolVar(&o.Renames, "renames", false, "keep renamed files as one node")
	fs.BoolVar(&o.Committed, "committed", false, "take the committers' times, not the authors'")
	fs.IntVar(&o.MaxFiles, "max-files", 0, "leave out commits that change more files")
	rest, err := out.Parse(fs, args, 3, 3)
	if err != nil {
		return err
	}
	start := time.Now()
	report, end := cli.Progress(out)
	defer end()
	var said notice.List
	o.Quiet = true
	o.Notice = func(n notice.Notice) {
		said.Add(n)
		out.Logf("gnb data: %s", n)
	}
	o.Progress = func(done, total int64) { report("read", "commits", done, total) }
	ds, err := history.Read(ctx, rest[1], rest[2], o)
	end()
	if err != nil {
		return err
	}
	defer ds.Close()
	e, err := temporal.Of(ds)
	if err != nil {
		return err
	}
	stats := temporal.StatsOf(e)
	stats.Unit = ds.Meta.TimeUnit
	authors, files := ds.Meta.NodeTypes[0].Count, ds.Meta.NodeTypes[1].Count
	seconds := time.Since(start).Seconds()
	out.Printf("%s: %d authors, %d files, in %.2f s\n%s\nwritten to %s\n", ds.Name(), authors, files, seconds, stats, rest[2])
	out.Result(map[string]any{"name": ds.Name(), "nodes": ds.Nodes(), "edges": ds.Edges(), "events": ds.Meta.NumEvents, "authors": authors, "files": files, "event_stats": stats, "notices": said.Done(), "dir": rest[2], "seconds": seconds})
	return nil
}
