module github.com/graphnb/graphnb/gnb/sweep/testdata/goptuna

go 1.26.0

require (
	github.com/c-bata/goptuna v0.9.0
	github.com/graphnb/graphnb v0.0.0
)

require gonum.org/v1/gonum v0.17.0 // indirect

replace github.com/graphnb/graphnb => ../../../..
