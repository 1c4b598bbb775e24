// Package exitwatch tells when containers' processes end, where the runtime does
// not: it asks once for each process, has the kernel tell of its end (pidfd), and
// then waits until the runtime knows of it, too.
//
// What came of a container it does not keep: whoever hears of an end looks at the
// pod in the runtime. It hears nothing of containers whose process the
// runtime does not tell, or whose process the kubelet can't see; those are found
// by listing.
package exitwatch
