// Package conformance_test asks of a whole cluster what a conformant node has
// to show, behaviour by behaviour, under the names that upstream gives them.
// docs/conformance.md lists them. The tests are written from what the API says,
// and look at the cluster only through upstream's client.
package conformance_test
