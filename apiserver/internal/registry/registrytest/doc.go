// Package registrytest is a registry.Resource in memory, for tests of loops
// that run on a test's own clock. It has no rules: it returns what was written.
package registrytest
