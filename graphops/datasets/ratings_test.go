package datasets

import (
	"math"
	"slices"
	"testing"
)

// Ratings are what their formula says, with the noise that was asked for: what is left without the bonus and the quality has its
// deviation. Half of what a user rates, and a little more, is of the favourite genre, and the mean is as bad as the comment says.
func TestRatings(t *testing.T) {
	d, err := Ratings(RatingsOptions{Noise: 0.3, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	same, err := Ratings(RatingsOptions{Noise: 0.3, Seed: 5})
	if err != nil || !slices.Equal(d.EdgeAnswers.Targets.F32, same.EdgeAnswers.Targets.F32) || !slices.Equal(d.Graph.Indices, same.Graph.Indices) {
		t.Fatalf("the same seed makes other ratings, %v", err)
	}
	const users = 2000
	items := d.NodeFeatures[1].Dense
	src, dst, types := d.Graph.EdgesAt(d.EdgeRows)
	genre := func(v int32) int { return slices.Index(items.Row(int(v) - users)[:ratingGenres], 1) }
	rated := make([][ratingGenres]int, users)
	for i, u := range src {
		if types[i] != 0 {
			t.Fatalf("row %d is of relation %d", i, types[i])
		}
		rated[u][genre(dst[i])]++
	}
	favourites, sum, squares, all, mean := 0, 0.0, 0.0, 0.0, 0.0
	n := float64(len(src))
	for i, u := range src {
		y := float64(d.EdgeAnswers.Targets.F32[i])
		mean += y / n
		all += y * y / n
		g, bonus := genre(dst[i]), 0.0
		if rated[u][g] == slices.Max(rated[u][:]) {
			favourites, bonus = favourites+1, 1
		}
		z := y - 3 - bonus - float64(items.Row(int(dst[i]) - users)[ratingGenres])/2
		sum, squares = sum+z/n, squares+z*z/n
	}
	if share := float64(favourites) / n; len(src) != users*20 || share < 0.54 || share > 0.6 {
		t.Errorf("%d ratings, %.3f of the favourite genre, want about 9/16", len(src), share)
	}
	if noise := math.Sqrt(squares - sum*sum); math.Abs(noise-0.3) > 0.01 || math.Abs(sum) > 0.01 {
		t.Errorf("the noise is %.4f around %.4f, want 0.3 around 0", noise, sum)
	}
	if deviation, want := math.Sqrt(all-mean*mean), math.Sqrt(0.5+0.09); math.Abs(deviation-want) > 0.05 {
		t.Errorf("the deviation is %.3f, want about %.3f", deviation, want)
	}
	if d.Graph.NumEdges() != 2*int64(n) {
		t.Errorf("%d edges with their reverses", d.Graph.NumEdges())
	}
}
