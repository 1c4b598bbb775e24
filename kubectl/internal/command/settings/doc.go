// Package settings holds the verbs about kctl's own files: config for kubeconfigs,
// kuberc for preferences.
//
// Only the root of the command line calls it. No server is asked for anything.
package settings
