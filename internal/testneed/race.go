//go:build race

package testneed

func init() { underRace = true }
