// Package docker holds the images' Dockerfiles, a compose file, and the script with which make, the
// tests and the images install what notebooks need. Its only Go code tests these files.
package docker
