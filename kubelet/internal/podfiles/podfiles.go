// Package podfiles says where on the node the files of pods are: what the kubelet
// keeps for each below its own directory, and the logs.
//
// Every room that reads, writes or removes one of them asks here, so that all of
// them mean the same. It never touches the files.
package podfiles

import (
	"fmt"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// LogDirectory is where the runtime writes the logs of a pod's containers.
func LogDirectory(podLogsDir, namespace, name string, uid types.UID) string {
	return filepath.Join(podLogsDir, fmt.Sprintf("%s_%s_%s", namespace, name, uid))
}

// LogPath is a container's log inside its pod's log directory, one file for
// each time that it was started.
func LogPath(container string, restartCount int32) string {
	return filepath.Join(container, strconv.Itoa(int(restartCount))+".log")
}

// PodsDir is where everything that the kubelet keeps for pods is.
func PodsDir(rootDir string) string { return filepath.Join(rootDir, "pods") }

// PodDir is where everything that the kubelet keeps for a pod is.
func PodDir(rootDir string, uid types.UID) string {
	return filepath.Join(PodsDir(rootDir), string(uid))
}

// HostsFile is the file that a pod's containers see as /etc/hosts.
func HostsFile(rootDir string, uid types.UID) string {
	return filepath.Join(PodDir(rootDir, uid), "etc-hosts")
}

// MessageDir is where the files are that a container writes its termination
// messages to, one for each time that it was started.
func MessageDir(rootDir string, uid types.UID, container string) string {
	return filepath.Join(PodDir(rootDir, uid), "containers", container)
}
