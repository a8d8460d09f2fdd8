// Package docker is the images: Dockerfiles, a compose file, and the one script by which make, the
// tests and the images install what notebooks run on. There is no Go in it but the tests of these.
package docker
