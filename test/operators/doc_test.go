// Package operators_test tests an operator, written as people write them with
// controller-runtime, in that library's own way: its test environment starts an
// API server and an etcd, and they are ours. Nothing here knows how our
// programs want to be started.
package operators_test
