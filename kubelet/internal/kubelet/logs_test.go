package kubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestLogsAreRotated has a container write more than its log may have, and
// sees that the runtime goes on in a new one.
func TestLogsAreRotated(t *testing.T) {
	b := newBed(t)
	b.stop()
	b.config.Logs.MaxSize, b.config.Logs.Interval = resource.MustParse("4Ki"), 50*time.Millisecond
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
