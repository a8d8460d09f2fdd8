// Package datasets finds and makes datasets by name: generated ones ([Planted], [RMAT], [Ratings],
// [Molecules], [dataset.Karate]), published ones, directories, and those of graph servers.
//
// [Load] takes the name: a generator such as "planted?nodes=20000", the path of a directory, or a
// published dataset such as "cora". A dataset's directory that has the name of a generator or of a published
// dataset comes first; "karate?" is the generator all the same. A published dataset is in $GNB_HOME/datasets (~/.cache/graphnb/datasets) after
// package registry/get has downloaded it. [List] has all names. [LoadWith] gets missing datasets,
// reports progress, and ends with its context; [RegisterGetter] and [RegisterRemote] give a program
// the means to download and to speak with servers.
package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/internal/phrase"
)

// ownName is the form of a directory's name that Load takes without a path.
var ownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(@[1-9][0-9]{0,4})?$`)

// Generator is a family of generated datasets.
type Generator struct {
	Name    string
	Summary string // one line
	Example string // a spec for Load
	make    func(q url.Values, m *meter) (*dataset.Dataset, error)
	params  []string
}

// Generators returns the generators that [Load] knows, by name.
func Generators() []Generator {
	return []Generator{
		{
			Name:    "karate",
			Summary: "Zachary's karate club: 34 nodes, 78 edges, two factions",
			Example: "karate",
			make:    func(url.Values, *meter) (*dataset.Dataset, error) { return dataset.Karate(), nil },
		},
		{
			Name:    "planted",
			Summary: "planted partition: noisy features, neighbours of the same class",
			Example: "planted?nodes=100000&classes=8",
			params:  []string{"nodes", "classes", "features", "degree", "homophily", "noise", "seed"},
			make:    loadPlanted,
		},
		{
			Name:    "rmat",
			Summary: "R-MAT: 2^scale nodes with skewed degrees, as of the web and of social networks",
			Example: "rmat?scale=16&degree=16",
			params:  []string{"scale", "degree", "a", "b", "c", "features", "classes", "noise", "seed"},
			make:    loadRMAT,
		},
		{
			Name:    "molecules",
			Summary: "many small graphs like molecules, whose class and number depend on their bonds",
			Example: "molecules?graphs=100000",
			make:    loadMolecules,
			params:  []string{"graphs", "noise", "seed"},
		},
		{
			Name:    "houses",
			Summary: "BA-Shapes: houses of five nodes on a random graph, to explain predictions",
			Example: "houses?nodes=300&houses=80",
			make:    loadHouses,
			params:  []string{"nodes", "houses", "seed"},
		},
		{
			Name:    "ratings",
			Summary: "users and items with a rating to predict of each edge, which neighbours tell",
			Example: "ratings?users=10000&items=2000",
			make:    loadRatings,
			params:  []string{"users", "items", "degree", "noise", "seed"},
		},
	}
}

// Load opens or generates a dataset: the name of a generator, with parameters as in a URL
// ("karate", "planted?nodes=100000&seed=7"), the path of a dataset directory, or the name of a
// published dataset ("cora"; see package registry) that has been converted into
// [registry.Datasets]. The name of a generator takes precedence over a directory of the same name,
// which "./karate" opens; a dataset directory takes precedence over the name of a published
// dataset. For any other name the error lists the known datasets.
func Load(spec string) (*dataset.Dataset, error) {
	return LoadWith(context.Background(), spec, LoadOptions{})
}

// Getter makes the directory e.Dir() of a published dataset.
type Getter func(ctx context.Context, e registry.Entry) error

// LoadOptions are the options of [LoadWith]. With the zero value it equals [Load].
type LoadOptions struct {
	// Get is called for a published dataset that is not on this machine; without it, LoadWith
	// returns an error that says how to get the dataset.
	Get Getter
	// Progress is called with the progress of a generator, in units of about equal time, by one
	// goroutine at a time and at most 20 times per second.
	Progress func(done, total int64)
	// ToWrite draws the features of a generated dataset when it is written ([dataset.Drawn]), so that they are never all in
	// memory. Such a dataset can only be written; the files have the same bits.
	ToWrite bool
}

// LoadWith is [Load] with options: it can get missing datasets and report progress. A generator
// stops soon after ctx ends.
func LoadWith(ctx context.Context, spec string, o LoadOptions) (*dataset.Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if IsRemote(spec) {
		return loadRemote(ctx, spec, o)
	}
	name, query, asked := strings.Cut(spec, "?")
	for _, g := range Generators() {
		if g.Name == name {
			if _, err := os.Stat(filepath.Join(spec, dataset.MetadataFile)); err == nil && !asked {
				return dataset.Open(spec) // a directory of that name, such as one that the generator wrote
			}
			return g.load(query, &meter{ctx: ctx, report: o.Progress, every: 50 * time.Millisecond, toWrite: o.ToWrite})
		}
	}
	entry, published := registry.Find(spec)
	_, err := os.Stat(spec)
	if published && err == nil {
		_, err = os.Stat(filepath.Join(spec, dataset.MetadataFile))
		// A directory without metadata may hold raw files of the same name; continue with the
		// published dataset.
	}
	switch {
	case err == nil:
		return dataset.Open(spec)
	case published:
		return openPublished(ctx, entry, o.Get)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dataset: %w", err)
	}
	if dir, err := registry.Datasets(); err == nil && ownName.MatchString(spec) {
		// The user's own datasets next to the published ones.
		if _, err := os.Stat(filepath.Join(dir, spec, dataset.MetadataFile)); err == nil {
			return dataset.Open(filepath.Join(dir, spec))
		}
	}
	var names, known, all []string
	for _, g := range Generators() {
		names = append(names, g.Example)
		all = append(all, g.Name)
	}
	for _, e := range registry.List() {
		known = append(known, e.Name)
	}
	if strings.ContainsAny(spec, `/\`) {
		return nil, fmt.Errorf("dataset: there is no directory %q; \"gnb data convert\" makes one from your own data", spec)
	}
	if near := phrase.Nearest(name, append(all, known...)); near != "" {
		return nil, fmt.Errorf("dataset: there is no dataset %q; did you mean %s? \"gnb data list\" lists all names; a path must be that of a dataset's directory", spec, near)
	}
	return nil, fmt.Errorf("dataset: there is no dataset %q: give the path of a dataset directory, a generator (%s) or a published dataset (%s)",
		spec, strings.Join(names, ", "), strings.Join(known, ", "))
}

func openPublished(ctx context.Context, e registry.Entry, get Getter) (*dataset.Dataset, error) {
	dir, err := e.Dir()
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, dataset.MetadataFile)); err == nil {
		return dataset.Open(dir)
	}
	if get == nil {
		return nil, fmt.Errorf("dataset: %s is not on this machine: \"gnb data get %s\" gets it; %s", e.Name, e.Name, e.Instructions())
	}
	if err := get(ctx, e); err != nil {
		return nil, err
	}
	return dataset.Open(dir)
}

// Listed is one line of a list of datasets.
type Listed struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // "generator", "published" or "own" (in registry.Datasets under another name)
	Summary string `json:"summary"`
	// Dir is the dataset directory, or "" if it does not exist yet.
	Dir   string          `json:"dir,omitempty"`
	Entry *registry.Entry `json:"entry,omitempty"` // of a published dataset
}

// List returns the datasets that [Load] knows by name: the generators, the published datasets, and
// others in [registry.Datasets].
func List() ([]Listed, error) {
	var all []Listed
	for _, g := range Generators() {
		all = append(all, Listed{Name: g.Name, Kind: "generator", Summary: g.Summary + " (" + g.Example + ")"})
	}
	store, err := registry.Datasets()
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	here := func(name string) string {
		dir := filepath.Join(store, name)
		if _, err := os.Stat(filepath.Join(dir, dataset.MetadataFile)); err != nil {
			return ""
		}
		return dir
	}
	known := map[string]bool{}
	for _, e := range registry.List() {
		known[e.Name] = true
		all = append(all, Listed{Name: e.Name, Kind: "published", Summary: e.Summary, Dir: here(e.Name), Entry: &e})
	}
	entries, err := os.ReadDir(store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	for _, e := range entries {
		if dir := here(e.Name()); dir != "" && !known[e.Name()] && ownName.MatchString(e.Name()) {
			all = append(all, Listed{Name: e.Name(), Kind: "own", Summary: "in " + dir, Dir: dir})
		}
	}
	return all, nil
}

func (g Generator) load(query string, m *meter) (*dataset.Dataset, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: the parameters %q must have the form name=value&name=value: %w", g.Name, query, err)
	}
	for _, name := range sortedKeys(values) {
		if !slices.Contains(g.params, name) {
			takes := "it takes none"
			if len(g.params) > 0 {
				takes = "it takes " + strings.Join(g.params, ", ")
			}
			return nil, fmt.Errorf("dataset: %s has no parameter %q; %s", g.Name, name, takes)
		}
		if n := len(values[name]); n > 1 {
			return nil, fmt.Errorf("dataset: %s: %s is given %d times", g.Name, name, n)
		}
	}
	d, err := g.make(values, m)
	if err == nil {
		m.end()
	}
	return d, err
}

func sortedKeys(values url.Values) []string {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func loadPlanted(q url.Values, m *meter) (*dataset.Dataset, error) {
	var given PlantedOptions
	if err := given.parse(q); err != nil {
		return nil, err
	}
	// Parsed again over the defaults, because a zero in PlantedOptions means the default, but a
	// zero in the spec means zero.
	o := given.defaults()
	if err := o.parse(q); err != nil {
		return nil, err
	}
	return planted(o, 0, m)
}

func loadRMAT(q url.Values, m *meter) (*dataset.Dataset, error) {
	var given RMATOptions
	if err := given.parse(q); err != nil {
		return nil, err
	}
	o := given.defaults()
	if err := o.parse(q); err != nil {
		return nil, err
	}
	if q.Has("a") || q.Has("b") || q.Has("c") { // the defaults go together
		o.A, o.B, o.C = given.A, given.B, given.C
	}
	return rmat(o, 0, m)
}

// parse sets the options that q gives.
func (o *PlantedOptions) parse(q url.Values) error {
	return parseParams("planted", q, []param{
		wholeParam("nodes", &o.Nodes),
		wholeParam("classes", &o.Classes),
		wholeParam("features", &o.Features),
		realParam("degree", &o.Degree, "a number"),
		realParam("homophily", &o.Homophily, "a number from 0 to 1"),
		realParam("noise", &o.Noise, "a number"),
		seedParam(&o.Seed),
	})
}

// parse sets the options that q gives.
func (o *RMATOptions) parse(q url.Values) error {
	return parseParams("rmat", q, []param{
		wholeParam("scale", &o.Scale),
		realParam("degree", &o.Degree, "a number"),
		realParam("a", &o.A, "a number from 0 to 1"),
		realParam("b", &o.B, "a number from 0 to 1"),
		realParam("c", &o.C, "a number from 0 to 1"),
		wholeParam("features", &o.Features),
		wholeParam("classes", &o.Classes),
		realParam("noise", &o.Noise, "a number"),
		seedParam(&o.Seed),
	})
}

// param is one parameter of a generator.
type param struct {
	name, want string
	set        func(text string) error
}

func wholeParam(name string, to *int) param {
	return param{name, "a whole number", func(s string) (err error) { *to, err = strconv.Atoi(s); return err }}
}

func realParam(name string, to *float64, want string) param {
	return param{name, want, func(s string) (err error) { *to, err = strconv.ParseFloat(s, 64); return err }}
}

func seedParam(to *uint64) param {
	return param{"seed", "a whole number from 0 to 2^64-1", func(s string) (err error) { *to, err = strconv.ParseUint(s, 10, 64); return err }}
}

func parseParams(generator string, q url.Values, params []param) error {
	for _, p := range params {
		if q.Has(p.name) && p.set(q.Get(p.name)) != nil {
			return fmt.Errorf("dataset: %s: %s is %q; it must be %s", generator, p.name, q.Get(p.name), p.want)
		}
	}
	return nil
}
