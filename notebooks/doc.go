// Package notebooks is the notebooks that show what one can do, and the tests that run them, and cells of
// the tests' own, in a real kernel.
package notebooks
