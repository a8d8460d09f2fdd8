// Package numbers predicts numbers of nodes: prices, ratings, temperatures, times. A node has one target or several.
package numbers
