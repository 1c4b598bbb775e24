// Package daemon holds what every long-running program does in the same way:
// logging, signals, exit codes, the version, health checks, metrics, and
// telling systemd that it is ready.
//
// The three daemons and kctl's main functions call it. It knows nothing of pods.
package daemon
