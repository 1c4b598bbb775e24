// Package relay_test follows pods through a whole cluster of the built
// programs, on a real containerd, as a user of kctl sees it.
package relay_test
