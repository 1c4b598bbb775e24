// Package compose_test brings the control plane of deploy/compose up in a Docker
// engine of its own, takes parts of it away, and checks that what was
// acknowledged stays and that work goes on.
//
// The engine runs in a network namespace that the test makes, with its own
// directories, so that it meets nobody else's.
package compose_test
