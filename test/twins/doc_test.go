// Package twins_test puts upstream's kube-apiserver, kube-scheduler and kubelet
// in the place of ours, one at a time, and ours back in theirs, while a pod
// runs. After each change a pod is run, restarted and deleted. The programs are
// those of `make upstream`.
package twins_test
