package datasets

import (
	"fmt"
	"math"
	"net/url"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/philox"
)

// RatingsOptions are the parameters of [Ratings]. The zero value makes a small graph.
type RatingsOptions struct {
	// Users and Items are the numbers of nodes of each type; 0 means 2000 users and 500 items.
	Users, Items int
	// Degree is the number of ratings of each user; 0 means 20.
	Degree int
	// Noise is the standard deviation of what is added to a rating; 0 means 0.25, and a negative number no noise.
	Noise float64
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// ratingGenres is the number of genres of items.
const ratingGenres = 8

const ratingsKey = 0x726174696e677321

// Ratings generates a graph of users and items with a number to predict of each edge, the rating that a user gives an item:
//
//	rating = 3 + [the item's genre is the user's favourite] + quality/2 + noise
//
// An item has one of 8 genres, one-hot, and a quality of mean 0 and variance 1 as features. A user has one favourite genre, which no
// feature says: its only feature, an age, has nothing to do with ratings. But half of the items that a user rates are of the
// favourite genre, and the others of any, so its neighbours show it. A network that reads them reaches an error near the noise: an
// RMSE of Noise, and a MAE of 0.8·Noise. Without the edges it does not; the mean rating as the prediction has an RMSE of about
// √(0.25 + 0.25 + Noise²).
//
// The relations are user:rates:item, whose edges have the ratings, and its reverse item:rev_rates:user. 80 % of the ratings are
// train, 10 % val and 10 % test, at random.
//
// The result depends only on the options, bit for bit. It returns an error for options out of range.
func Ratings(o RatingsOptions) (*dataset.Dataset, error) {
	d := RatingsOptions{Users: 2000, Items: 500, Degree: 20, Noise: 0.25, Seed: o.Seed}
	if o.Users != 0 {
		d.Users = o.Users
	}
	if o.Items != 0 {
		d.Items = o.Items
	}
	if o.Degree != 0 {
		d.Degree = o.Degree
	}
	if o.Noise != 0 {
		d.Noise = max(0, o.Noise)
	}
	return ratings(d, nil)
}

func loadRatings(q url.Values, m *meter) (*dataset.Dataset, error) {
	o := RatingsOptions{Users: 2000, Items: 500, Degree: 20, Noise: 0.25}
	if err := parseParams("ratings", q, []param{
		wholeParam("users", &o.Users), wholeParam("items", &o.Items), wholeParam("degree", &o.Degree), realParam("noise", &o.Noise, "a number"), seedParam(&o.Seed),
	}); err != nil {
		return nil, err
	}
	return ratings(o, m)
}

// ratings generates with the given options; zeros mean zero.
func ratings(o RatingsOptions, m *meter) (*dataset.Dataset, error) {
	switch {
	case o.Items < 4*ratingGenres || o.Items > math.MaxInt32/2:
		return nil, fmt.Errorf("dataset: ratings: items is %d; it must lie in [%d, %d]", o.Items, 4*ratingGenres, math.MaxInt32/2)
	case o.Degree < 1 || o.Degree > o.Items/(2*ratingGenres):
		return nil, fmt.Errorf("dataset: ratings: degree is %d; it must lie in [1, items/%d], which is %d", o.Degree, 2*ratingGenres, o.Items/(2*ratingGenres))
	case o.Users < 10 || o.Users > math.MaxInt32/2 || o.Users > math.MaxInt32/2/o.Degree:
		return nil, fmt.Errorf("dataset: ratings: users is %d; it must be at least 10, and users times degree at most %d", o.Users, math.MaxInt32/2)
	case !(o.Noise >= 0 && o.Noise <= 1e6):
		return nil, fmt.Errorf("dataset: ratings: noise is %v; it is a standard deviation and must lie in [0, 1e6]", o.Noise)
	}
	if err := generatorRoom("ratings", o.Users+o.Items, ratingGenres+1, 2*float64(o.Users*o.Degree)); err != nil {
		return nil, err
	}
	m.expect(int64(o.Users))
	// Items of a genre are those with the same number modulo the number of genres.
	unit := 1 / math.Sqrt(4*(1<<32-1)/12.0)
	normal := func(u *philox.Stream) float64 { // the scaled sum of four uniform integers
		a, b := u.Next(), u.Next()
		return float64(int32(a&0xffff+a>>16+b&0xffff+b>>16)-2*0xffff) * unit
	}
	items := &dataset.Matrix{Rows: o.Items, Cols: ratingGenres + 1, F32: make([]float32, o.Items*(ratingGenres+1))}
	for i := range o.Items {
		u := philox.NewStream(o.Seed^ratingsKey, int64(i), 0, philox.C3(philox.User, 0, 0))
		row := items.Row(i)
		row[i%ratingGenres], row[ratingGenres] = 1, float32(normal(&u))
	}
	users := &dataset.Matrix{Rows: o.Users, Cols: 1, F32: make([]float32, o.Users)}
	n := o.Users * o.Degree
	src, dst, numbers := make([]int32, 0, n), make([]int32, 0, n), make([]float32, 0, n)
	rated := make([]int, o.Items) // the last user who rates it, plus 1
	for v := range o.Users {
		if v%1024 == 0 && !m.add(min(1024, o.Users-v)) {
			return nil, m.err()
		}
		u := philox.NewStream(o.Seed^ratingsKey, int64(v), 1, philox.C3(philox.User, 0, 0))
		favourite := int(philox.Bounded(u.Next(), ratingGenres))
		users.F32[v] = float32(normal(&u))
		for k := 0; k < o.Degree; {
			i := int(philox.Bounded(u.Next(), uint32(o.Items)))
			if k%2 == 0 { // of the favourite genre
				i -= i%ratingGenres - favourite
			}
			if i >= o.Items || rated[i] == v+1 {
				continue
			}
			rated[i] = v + 1
			y := 3 + float64(items.Row(i)[ratingGenres])/2
			if i%ratingGenres == favourite {
				y++
			}
			z := float64(normal(&u) * o.Noise) // converted against a fused multiply-add
			src, dst, numbers = append(src, int32(v)), append(dst, int32(o.Users+i)), append(numbers, float32(y+z))
			k++
		}
	}
	g, err := graphops.FromEdgesWith(o.Users+o.Items, src, dst, graphops.EdgeData{Types: make([]uint16, n)}, graphops.BuildOptions{})
	if err != nil {
		return nil, err
	}
	schema := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: o.Users}, {Name: "item", Count: o.Items}},
		Relations: []graphops.Relation{{Src: "user", Name: "rates", Dst: "item"}},
	}
	if g, err = g.WithTypes(schema, g.EdgeTypes); err != nil {
		return nil, err
	}
	if g, err = g.WithReverses(0); err != nil {
		return nil, err
	}
	d := &dataset.Dataset{
		Graph: g, NodeFeatures: []dataset.NodeFeatures{{Dense: users}, {Dense: items}}, Splits: map[string][]int32{},
		Meta: dataset.Metadata{Name: "ratings", Source: fmt.Sprintf("generated by ratings?users=%d&items=%d&degree=%d&noise=%v&seed=%d", o.Users, o.Items, o.Degree, o.Noise, o.Seed), Licence: "CC0-1.0"},
	}
	at, err := d.FindEdges(src, dst, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.SetEdgeTargets(at, &dataset.Matrix{Rows: n, Cols: 1, F32: numbers}, []string{"rating"}); err != nil {
		return nil, err
	}
	if err := d.SplitEdges(dataset.EdgeSplitOptions{Seed: o.Seed}); err != nil {
		return nil, err
	}
	d.Describe()
	return d, nil
}
