// Package images builds container images out of static binaries, without a
// container engine, and serves them from a small OCI registry on loopback, so
// that a cluster runs where no public registry can be reached.
//
// cluster starts the registry, the Makefile writes the images to files. It
// knows nothing of pods.
package images
