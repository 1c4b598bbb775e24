package command

import (
	"io"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
)

// A verb that is called otherwise than its completer would be completed with files.
func TestCompletersAreOfVerbs(t *testing.T) {
	cli := frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, clock.RealClock{})
	root := newRoot(cli)
	for verb := range completers(cli) {
		cmd, rest, err := root.Find(strings.Fields(verb))
		if err != nil || len(rest) > 0 || cmd.CommandPath() != "kctl "+verb {
			t.Errorf("%q is %q, %v", verb, cmd.CommandPath(), err)
		}
		if cmd.ValidArgsFunction == nil {
			t.Errorf("%q is not completed", verb)
		}
	}
	cmd, _, err := root.Find([]string{"exec"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := cmd.GetFlagCompletionFunc("container"); !ok {
		t.Error("exec -c is completed with files")
	}
}

func TestWhatOfAPodIsCompleted(t *testing.T) {
	pod := &core.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers:     []corev1.Container{{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 443}}}},
	}}
	if got := containers(pod); !slices.Equal(got, []string{"init", "web"}) {
		t.Errorf("containers %q", got)
	}
	for typed, want := range map[string][]string{"": {"80:80", "443:443"}, "8080": {"8080:80", "8080:443"}, "8080:4": {"8080:80", "8080:443"}} {
		if got := forwards(podPorts(pod), typed); !slices.Equal(got, want) {
			t.Errorf("ports at %q: %q", typed, got)
		}
	}
}
