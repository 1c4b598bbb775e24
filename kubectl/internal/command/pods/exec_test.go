package pods

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
)

// How to come back is said at a terminal, where there is something to come back to. Elsewhere
// it would be taken for output of the container.
func TestResumeAtTerminals(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	for j, says := range map[*attachOptions]bool{
		{tty: true}: true, {}: false, {tty: true, quiet: true}: false, {tty: true, removed: true}: false,
	} {
		var out strings.Builder
		j.CLI = &frame.CLI{Streams: frame.Streams{Out: &out}, Name: "kctl"}
		if j.sayResume(pod, "x"); (out.Len() > 0) != says {
			t.Errorf("tty %v, quiet %v, --rm %v: said %q", j.tty, j.quiet, j.removed, out.String())
		}
	}
}

// An ephemeral container is not started again: there may be nothing to come back to.
func TestResumeOfAnEphemeralContainer(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}}}
	var out strings.Builder
	j := &attachOptions{tty: true, CLI: &frame.CLI{Streams: frame.Streams{Out: &out}, Name: "kctl"}}
	j.sayResume(pod, "debugger")
	want := "Session ended, the ephemeral container will not be restarted but may be reattached using 'kctl attach x -c debugger -n default -i " +
		"-t' if it is still running\n"
	if out.String() != want {
		t.Errorf("said %q", out.String())
	}
}

// Of a log that is read twice, what was shown the first time is not shown again.
func TestLogGoesOn(t *testing.T) {
	var shown strings.Builder
	earlier := &lengthWriter{out: &shown}
	if _, err := io.WriteString(earlier, "one\ntw"); err != nil {
		t.Fatal(err)
	}
	rest := &skipWriter{out: &shown, skip: earlier.length}
	for _, part := range []string{"one\n", "two\n", "three\n"} {
		if n, err := io.WriteString(rest, part); n != len(part) || err != nil {
			t.Fatalf("%q: %d written, %v", part, n, err)
		}
	}
	if shown.String() != "one\ntwo\nthree\n" {
		t.Errorf("shown: %q", shown.String())
	}
}
