// Package tutorials is six notebooks, one for each text that people learn multi-GPU training of graph
// neural networks from, and the tests that run them: see README.md.
package tutorials
