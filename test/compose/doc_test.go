// Package compose_test brings up the control plane of deploy/compose in a
// Docker engine of its own, takes parts of it away, and checks that nothing
// acknowledged is lost and that work goes on.
//
// The engine runs in a network namespace that the test makes, with directories
// of its own, so that it does not meet the machine's.
package compose_test
