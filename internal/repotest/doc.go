// Package repotest tests the parts of this repository that are not code: GitHub's workflow and
// forms, the development container, and the links and figures on its pages.
package repotest
