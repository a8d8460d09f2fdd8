// Package onranks has no code but tests: of runs whose ranks a launcher starts, on one host and on
// several, with real processes.
package onranks
