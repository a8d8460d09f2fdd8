// Package repotest has the tests of what this repository shows of itself beside its code: GitHub's
// workflow and forms, the development container, the links of its pages, and the figures on them.
package repotest
