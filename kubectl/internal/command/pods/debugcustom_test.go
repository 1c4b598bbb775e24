package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A custom profile can't remove what the command line says.
func TestCustomTakesNothingAway(t *testing.T) {
	for patch, fine := range map[string]bool{
		`{"env":[{"name":"A","value":"b"}]}`:   true,
		`{"tty":null}`:                         true,
		`{"image":null}`:                       false,
		`{"command":null}`:                     false,
		`{"$patch":"replace","workingDir":""}`: false,
	} {
		container := corev1.Container{Name: "debugger", Image: "a", Command: []string{"sh"}, TTY: true}
		err := (&debugOptions{custom: []byte(patch), customFile: "f"}).customize(&container)
		if (err == nil) != fine || container.Image != "a" || container.Name != "debugger" {
			t.Errorf("%s: %v, %+v", patch, err, container)
		}
	}
}
