package kubelet

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/loglinks"
)

// TestLogsAreRotated has a container write more than its log may hold, and
// checks that the runtime goes on in a new file.
func TestLogsAreRotated(t *testing.T) {
	b := newBed(t)
	b.stop()
	b.config.ContainerLogs.MaxSize, b.config.ContainerLogs.Interval = resource.MustParse("4Ki"), 50*time.Millisecond
	b.start()

	pod := shellPod("talker", `i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo "line $i of four hundred"; [ $((i%50)) = 0 ] && usleep 200000; done; sleep 1000`)
	b.create(pod)
	b.waitPhase("talker", corev1.PodRunning)
	var files []string
	text := func() string {
		files, _ = filepath.Glob(filepath.Join(b.config.PodLogsDir, "default_talker_*", "*", "0.log*"))
		slices.Sort(files)
		var all bytes.Buffer
		for _, file := range append(slices.DeleteFunc(slices.Clone(files), func(f string) bool { return strings.HasSuffix(f, ".log") }),
			slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.HasSuffix(f, ".log") })...) {
			data, err := os.ReadFile(file)
			if err != nil {
				return "" // it was moved meanwhile
			}
			all.Write(data)
		}
		return all.String()
	}
	b.eventually("the last line, in a log begun anew", func() bool {
		return strings.Contains(text(), "line 400 of four hundred") && len(files) >= 2
	})
	if len(files) > 5 {
		t.Errorf("%d files are kept: %v", len(files), files)
	}
}

// Log shippers find each container's log by a link whose name says whose it is;
// the link exists as long as the log.
func TestLogsAreLinked(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("talker", "echo told; "+forever))
	id := strings.TrimPrefix(b.waitPhase("talker", corev1.PodRunning).Status.ContainerStatuses[0].ContainerID, "containerd://")
	link := loglinks.Path(b.config.PodLogsDir, "default", "talker", "main", id)
	b.eventually("the log by its link", func() bool {
		text, err := os.ReadFile(link)
		return err == nil && strings.HasSuffix(string(text), "told\n")
	})
	b.delete("talker")
	b.api.wait("talker to be gone", func() bool { return b.api.pod("talker") == nil })
	b.eventually("the link to be gone", func() bool {
		_, err := os.Lstat(link)
		return errors.Is(err, fs.ErrNotExist)
	})
}
