// Package critest gives tests of the kubelet a real containerd of their own:
// its own root, state, socket, CNI network and bridge in a temporary directory,
// with a pause and a busybox image already in it. The machine's own containerd
// is not touched, and everything is removed after the test, failed or not;
// anything left behind fails the test. If a test is killed, by ^C or a time
// limit, the next one cleans up.
//
// Only tests may import it.
package critest
