// Package operators_test has an operator, as people write them with
// controller-runtime, tested in that library's own way: its test environment
// starts an API server and an etcd by itself, and they are ours. Nothing here
// knows how our programs want to be started.
package operators_test
