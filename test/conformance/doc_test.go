// Package conformance_test checks what a conformant node has to do, behaviour
// by behaviour, under the names of upstream's tests. docs/conformance.md lists
// them. The tests are written from the API's documentation, and see the cluster
// only through client-go.
package conformance_test
