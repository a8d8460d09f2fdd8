package live

import "github.com/graphnb/graphnb/gnb/internal/chart"

// pen draws the parts of a picture.
type pen struct{ *chart.Painter }
