// Package envknob names, describes and reads GraphNB's environment variables; no other package
// does.
//
// # Basics
//
//	dir := envknob.Runs.Get()      // "" where GNB_RUNS is not set
//	if envknob.Headless.On() { … } // set, and not 0, false, no or off
//
// A test compares [All] with the table in docs/environment.md, and finds names that are written anywhere
// else in the source.
//
// # Caveats
//
// A variable is read each time it is asked for, so tests can set it.
package envknob

import (
	"os"
	"strings"
)

// Audience is the group of people who set a variable.
type Audience string

// The audiences, in the order of the table.
const (
	Users      Audience = "For users"
	GPUs       Audience = "For GPUs"
	Clusters   Audience = "On a cluster"
	Internal   Audience = "Set by GraphNB itself"
	Developers Audience = "For those who work on GraphNB"
)

// Knob is an environment variable.
type Knob struct {
	Name  string
	Value string // what it is set to, such as "FOLDER" or "1"
	Doc   string // description for the table
	For   Audience
}

// Get returns the variable's value, "" if it is not set.
func (k *Knob) Get() string { return os.Getenv(k.Name) }

// On reports whether a switch is on: set to a value other than 0, false, no and off.
func (k *Knob) On() bool { return on(k.Get()) }

// OnIn is [Knob.On] for an environment given as NAME=VALUE; the last entry of a name counts.
func (k *Knob) OnIn(env []string) bool {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, k.Name+"="); ok {
			value = v
		}
	}
	return on(value)
}

func on(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// String returns the variable's name.
func (k *Knob) String() string { return k.Name }
