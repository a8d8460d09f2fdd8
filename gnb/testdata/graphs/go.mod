module example.com/graphs

go 1.26.0

require github.com/graphnb/graphnb v0.0.0

replace github.com/graphnb/graphnb => ../../..
