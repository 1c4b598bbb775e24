// Package operation tests the server as a process: serving, draining, flags,
// metrics, audit, encryption, fairness, and several servers side by side.
package operation
