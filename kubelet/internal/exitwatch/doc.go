// Package exitwatch notices the end of containers' processes where the runtime
// does not report it: it asks the runtime once for each process, lets the kernel
// report its end (pidfd), and then waits until the runtime knows of it, too.
//
// It keeps no results: its caller looks at the pod in the runtime. It can't watch
// containers whose process the runtime does not report or the kubelet can't see;
// their ends are found by listing.
package exitwatch
