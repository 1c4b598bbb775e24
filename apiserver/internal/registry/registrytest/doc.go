// Package registrytest is a registry.Resource in memory, for tests of loops
// that have to stand beside a clock of the test's own. It knows no rules: what
// is written is what is there.
package registrytest
