// Package dl opens shared libraries. They stay open until the process ends: their threads and handlers
// do not survive being unloaded.
package dl
