package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

// outline gets what a program needs of a dataset whose edges, features and labels stay at the servers:
// splits, parts and degrees and, if the address says so, the graph. It writes them to a directory
// below registry.Served(), because workers share files, and takes that of an earlier program with
// the same address, data and division into parts.
func (c *Client) outline(ctx context.Context, at address, report func(done, total int64)) (*dataset.Dataset, error) {
	above, err := registry.Served()
	if err != nil {
		return nil, err
	}
	sums := c.partSums()
	key := sha256.Sum256([]byte(strings.Join(append([]string{at.String(), c.hello.Digest, at.copies}, sums...), "\n")))
	dir := filepath.Join(above, hex.EncodeToString(key[:12]))
	if err := os.MkdirAll(above, 0o700); err != nil { // not for other users: a token may protect the data
		return nil, fmt.Errorf("remote: %w; set GNB_HOME to a directory", err)
	}
	open := func() (*dataset.Dataset, error) {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // see tidy; where it does not exist, Open fails
		ds, err := dataset.Open(dir)
		if err != nil {
			return nil, err
		}
		if p := ds.Meta.Parts; p == nil || p.Servers != at.String() || p.Of != c.hello.Digests || !slices.Equal(p.Sums, sums) {
			return nil, errors.Join(fmt.Errorf("remote: %s is not what %s serves; remove that directory", dir, at), ds.Close())
		}
		return ds, nil
	}
	ds, err := open()
	if !errors.Is(err, fs.ErrNotExist) {
		return ds, err
	}
	ds, err = c.splitsAndDegrees(ctx, at, report)
	if err != nil {
		return nil, err
	}
	err = dataset.WriteWith(ctx, dir, ds, dataset.WriteOptions{Checked: true})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("remote: keeping what %s serves: %w", at, err)
	}
	if ds, err = open(); err == nil { // perhaps the directory of a process that was faster
		tidy(above, time.Now(), mostServed)
	}
	return ds, err
}

// What tidy keeps.
const (
	unusedFor  = 30 * 24 * time.Hour
	usedLately = 24 * time.Hour // perhaps by a run that still starts workers
	mostServed = 8 << 30        // bytes
)

// tidy removes what no program has loaded for long from the directory of outlines: those loaded before unusedFor and,
// while all have more than most bytes, the one loaded longest ago, but none of the time usedLately. It does what it can:
// a directory that it cannot remove stays until the next time.
func tidy(above string, now time.Time, most int64) {
	type outline struct {
		path   string
		loaded time.Time
		bytes  int64
	}
	var all []outline
	entries, _ := os.ReadDir(above)
	sum := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		o := outline{path: filepath.Join(above, e.Name()), loaded: info.ModTime()}
		files, _ := os.ReadDir(o.path)
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				o.bytes += info.Size()
			}
		}
		sum += o.bytes
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b outline) int { return a.loaded.Compare(b.loaded) })
	for _, o := range all {
		age := now.Sub(o.loaded)
		if age <= usedLately || age <= unusedFor && sum <= most {
			continue
		}
		gone := o.path
		if !strings.HasSuffix(gone, removing) { // else a process was killed as it removed it
			gone += removing
			if err := os.Rename(o.path, gone); err != nil { // so that no program loads half of it
				continue
			}
		}
		if os.RemoveAll(gone) == nil {
			sum -= o.bytes
		}
	}
}

// removing ends the name of a directory that is being removed.
const removing = ".removing"

// partSums returns the digest of each part, which together tell one division of the same data from
// another. That of an undivided dataset is empty.
func (c *Client) partSums() []string {
	if c.hello.Sums == nil {
		return make([]string, c.Parts())
	}
	return c.hello.Sums
}

// splitsAndDegrees gets the arrays of an outline.
func (c *Client) splitsAndDegrees(ctx context.Context, at address, report func(done, total int64)) (*dataset.Dataset, error) {
	names := []string{bulk.PartsArray, bulk.InDegreesArray, bulk.OutDegreesArray}
	if at.copies == copyTopology {
		if c.hello.Arrays[bulk.IndptrArray] == 0 {
			return nil, fmt.Errorf("remote: the servers have %s in %d parts without its topology; leave copy=topology out, or divide it with the topology", c.hello.Metadata.Name, c.Parts())
		}
		names = append(append(names, bulk.IndptrArray, bulk.IndicesArray), bulk.EdgeArrays(c.hello.Edges)...)
		if c.hello.Metadata.NumEvents > 0 {
			names = append(names, bulk.EventsArray)
		}
	}
	for name := range c.hello.Arrays {
		if strings.HasPrefix(name, bulk.SplitArray) {
			names = append(names, name)
		}
	}
	done, total := int64(0), int64(0)
	for _, name := range names {
		total += c.hello.Arrays[name]
	}
	got := map[string][]byte{}
	for _, name := range names {
		b, err := c.array(ctx, name, func(n int) {
			if done += int64(n); report != nil {
				report(min(done, total), total)
			}
		})
		if err != nil {
			return nil, err
		}
		got[name] = b
	}
	ds := &dataset.Dataset{Splits: map[string][]int32{}, Meta: c.hello.Metadata, Arrays: map[string]dataset.Array{}}
	of, err := c.checkParts(view[int32](got[bulk.PartsArray]))
	if err != nil {
		return nil, err
	}
	rows, own := make([]int32, len(of)), make([]int32, c.Parts())
	for v, p := range of {
		rows[v] = own[p]
		own[p]++
	}
	ds.Arrays["parts"], ds.Arrays["rows"] = dataset.Array{I32: of}, dataset.Array{I32: rows}
	ds.Arrays["in_degrees"] = dataset.Array{I32: view[int32](got[bulk.InDegreesArray])}
	ds.Arrays["out_degrees"] = dataset.Array{I32: view[int32](got[bulk.OutDegreesArray])}
	for name, b := range got {
		if split, ok := strings.CutPrefix(name, bulk.SplitArray); ok {
			ds.Splits[split] = view[int32](b)
		}
	}
	if at.copies == copyTopology {
		if ds.Graph, err = c.graph(func(name string) []byte { return got[name] }); err != nil {
			return nil, err
		}
		if b := got[bulk.EventsArray]; b != nil {
			if ds.Events, err = c.checkEvents(view[int64](b)); err != nil {
				return nil, err
			}
		}
	}
	parts := &dataset.Parts{Count: c.Parts(), Servers: at.String(), NoTopology: ds.Graph == nil, Of: c.hello.Digests, Sums: c.partSums()}
	if c.hello.RowBytes > 0 {
		if parts.FeatureType = "f32"; c.hello.Half {
			parts.FeatureType = "f16"
		}
	}
	if c.hello.Edges.FeatureCols > 0 {
		if parts.EdgeFeatureType = "f32"; c.hello.Edges.Half {
			parts.EdgeFeatureType = "f16"
		}
	}
	ds.Meta.Parts = parts
	return ds, nil
}
