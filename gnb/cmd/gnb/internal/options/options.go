// Package options is what several commands ask for in the same words: the flags of a model and its training, datasets, and
// runs by their names.
package options
