// Package exitwatch tells when containers' processes end, where the runtime does
// not: it asks once for each process and has the kernel tell of its end (pidfd).
//
// What came of a container it does not know and does not ask: whoever hears of an
// end looks at the runtime. It hears nothing of containers whose process the
// runtime does not tell, or whose process the kubelet can't see; those are found
// by listing.
package exitwatch
