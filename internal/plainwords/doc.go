// Package plainwords holds the test of the plain-English rule in CONTRIBUTING.md. It has no code.
package plainwords
