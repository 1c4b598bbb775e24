// Package settings holds the verbs about kctl's own files: config for kubeconfigs,
// kuberc for preferences.
//
// Only the root of the command line calls it. It contacts no server.
package settings
