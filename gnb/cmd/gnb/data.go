package main

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/phrase"
)

var dataCommand = cli.Command{Name: "data", Summary: "list, get, info, show, check, generate, convert or append to datasets", Run: runData}

func runData(ctx context.Context, args []string, out *cli.Output) error {
	switch dataCommandOf(args) {
	case "convert":
		return runConvert(ctx, args, out)
	case "append":
		return runAppend(ctx, args, out)
	case "git":
		return runGit(ctx, args, out)
	}
	fs := out.Flags("list|get|info|show|check|generate|convert|append|git [DATASET] [DIR]", `list shows the datasets that are known by name; get downloads, verifies and converts one of them; info says what a dataset is, and show also reads its edges and labels: degrees, components, homophily, classes of each split, and a drawing of its types; check reads all of it, with the parts of it that are here, and says what is wrong with it, or which file differs from its recorded digest (--write-digests records digests for a directory that has none, or that you changed on purpose); generate writes a generator's dataset, such as planted?nodes=100000&classes=8, into the new directory DIR; convert reads the files of other programs, append adds new nodes to a dataset that was made of tables, and git makes a graph of events of a repository's history: gnb data convert --help, gnb data append --help, gnb data git --help.`)
	writeDigests := fs.Bool("write-digests", false, "after data check, record the files as they are")
	featureType := fs.String("feature-type", "", "`type` of generated features, f32 or f16")
	rest, err := out.Parse(fs, args, 1, 3)
	if err != nil {
		return err
	}
	want := map[string]int{"list": 1, "get": 2, "info": 2, "show": 2, "check": 2, "generate": 3}[rest[0]]
	switch {
	case want == 0:
		return cli.Usagef("there is no data command %q; it is list, get, info, show, check, generate, convert, append or git", rest[0])
	case *featureType != "" && rest[0] != "generate":
		return cli.Usagef("--feature-type is for data generate and data convert; data %s writes no features", rest[0])
	case *writeDigests && rest[0] != "check":
		return cli.Usagef("--write-digests is for data check")
	case len(rest) != want:
		return cli.Usagef("data %s takes %s after its name, and got %d", rest[0], phrase.Count(want-1, "argument"), len(rest)-1)
	}
	switch rest[0] {
	case "list":
		return listDatasets(out)
	case "get":
		return getDataset(ctx, out, rest[1])
	}
	start := time.Now()
	open := options.Load
	switch rest[0] {
	case "check":
		open = options.Open
		if *writeDigests {
			report, end := cli.Progress(out)
			err := divided.WriteDigests(ctx, rest[1], dataset.WriteDigestsOptions{Report: func(done, total int64) { report("check", "B", done, total) }})
			end()
			if err != nil {
				return err
			}
			out.Printf("digests of the files written to %s\n", filepath.Join(rest[1], dataset.MetadataFile))
		}
	case "info", "show":
		open = options.Open // of large ones the sizes alone
	case "generate":
		open = options.LoadToWrite
	}
	ds, err := open(ctx, out, rest[1])
	if err != nil {
		return err
	}
	defer ds.Close()
	var looks *inspect.Data
	switch rest[0] {
	case "check":
		report, end := cli.Progress(out)
		err := divided.Check(ctx, ds, func(done, total int64) { report("check", "B", done, total) })
		end()
		if err != nil {
			return err
		}
		out.Printf("%s\n", ds)
		for _, n := range ds.Meta.Notices {
			out.Printf("when it was converted: %s\n", n)
		}
		for _, note := range ds.EdgeOverlaps().Notes() {
			if !slices.ContainsFunc(ds.Meta.Notices, func(n notice.Notice) bool { return strings.HasSuffix(n.What, note) }) {
				out.Printf("%s\n", note)
			}
		}
		out.Printf("checked in %.2f s: no errors\n", time.Since(start).Seconds())
		if !ds.HasDigests() && ds.Dir() != "" {
			out.Printf("%s has no digests of its files, so damage that leaves valid values goes unnoticed: gnb data check --write-digests %s records them\n", dataset.MetadataFile, rest[1])
		}
	case "generate":
		var said notice.List
		report, end := cli.Progress(out)
		err := dataset.WriteWith(ctx, rest[2], ds, dataset.WriteOptions{Progress: func(done, total int64) { report("write "+rest[2], "B", done, total) }, FeatureType: *featureType, Said: said.Add})
		end()
		if err != nil {
			return err
		}
		for _, n := range said {
			out.Logf("gnb data: %s", n)
		}
		out.Printf("%s\nwritten to %s\n", ds, rest[2])
	default:
		if ds.Schema() != nil { // counting by relation needs valid types
			if err := divided.CheckOnce(ctx, ds, dataset.CheckOnceOptions{}); err != nil {
				return err
			}
		}
		out.Printf("%s\n%s", ds, schemaTable(ds, relationRows(ds)))
		if types, err := inspect.TypesOf(ds); err == nil && rest[0] == "show" {
			out.Printf("\n%s\n", types)
		}
		for _, name := range slices.Sorted(maps.Keys(ds.EdgeSplits)) {
			out.Printf("  split %-6s %d edges\n", name, len(ds.EdgeSplits[name]))
		}
		if a := ds.EdgeAnswers; a != nil {
			for _, name := range a.SplitNames() {
				out.Printf("  split %-6s %d edges with targets\n", name, len(a.Splits[name]))
			}
		}
		for _, name := range ds.SplitNames() {
			ids, err := ds.Split(name)
			if err != nil {
				return err
			}
			out.Printf("  split %-6s %d nodes\n", name, len(ids))
		}
		if m := ds.Meta; m.Source != "" {
			out.Printf("  source: %s\n", m.Source)
		}
		if rest[0] == "show" {
			var err error
			if looks, err = inspect.DataOf(ctx, ds); err != nil {
				return err
			}
			out.Printf("%s", looks)
		}
	}
	splits := map[string]int{}
	for name, ids := range ds.Splits {
		splits[name] = len(ids)
	}
	dir := ds.Dir()
	if rest[0] == "generate" {
		dir = rest[2]
	}
	result := map[string]any{
		"name": ds.Name(), "nodes": ds.Nodes(), "edges": ds.Edges(), "features": ds.FeatureDim(), "classes": ds.Classes(),
		"edge_features": ds.EdgeFeatureDim(), "edge_times": ds.HasEdgeTimes(),
		"splits": splits, "dir": dir, "seconds": time.Since(start).Seconds(), "digests": ds.HasDigests(),
	}
	if ds.Schema() != nil && (rest[0] == "info" || rest[0] == "show") {
		result["node_types"], result["relations"] = ds.Meta.NodeTypes, relationRows(ds)
	}
	if len(ds.Meta.Notices) > 0 {
		result["notices"] = ds.Meta.Notices
	}
	if looks != nil {
		if err := addFields(result, looks); err != nil {
			return err
		}
	}
	if names := ds.Meta.FeatureNames; len(names) > 0 && len(names) <= 1000 {
		result["feature_names"] = names
	}
	if a := ds.EdgeAnswers; a != nil {
		of := map[string]int{}
		for name, rows := range a.Splits {
			of[name] = len(rows)
		}
		result["edge_targets"], result["target_edges"], result["target_edge_splits"] = a.TargetDim(), len(ds.EdgeRows), of
	}
	if n := ds.Meta.NumEvents; n > 0 {
		result["events"] = n
		if ds.Meta.TimeUnit != "" {
			result["time_unit"] = ds.Meta.TimeUnit
		}
	}
	if len(ds.EdgeSplits) > 0 {
		edgeSplits := map[string]int{}
		for name, at := range ds.EdgeSplits {
			edgeSplits[name] = len(at)
		}
		result["edge_splits"] = edgeSplits
	}
	out.Result(result)
	return nil
}

// addFields adds the fields of v's JSON form to a result.
func addFields(result map[string]any, v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return err
	}
	for name, field := range fields {
		result[name] = field
	}
	return nil
}
