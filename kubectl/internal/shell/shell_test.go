package shell

import (
	"os/exec"
	"testing"
)

func TestWord(t *testing.T) {
	for _, text := range []string{"/var/lib/kctl/admin.kubeconfig", "/home/a user/k", "it's", "$HOME", "", "a;b", "*"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %s, which a shell takes for %q, %v", text, Word(text), out, err)
		}
	}
	if got := Word("/a/b-c.d"); got != "/a/b-c.d" {
		t.Errorf("a plain word is %s", got)
	}
}
