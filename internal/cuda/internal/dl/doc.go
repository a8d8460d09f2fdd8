// Package dl opens shared libraries. They stay open until the process ends, because their threads
// and handlers would not survive unloading.
package dl
