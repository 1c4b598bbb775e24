// Package critest gives tests of the kubelet a real containerd of their own:
// its own root, state, socket, CNI network and bridge in a temporary directory,
// with a pause and a busybox image already in it. Nothing of the machine's own
// containerd is touched, and everything is taken away after the test, failed or
// not; what is left behind nevertheless fails the test. What a test leaves that
// is killed, by ^C or a time limit, the next one takes away.
//
// Only tests may import it.
package critest
