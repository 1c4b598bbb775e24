package frame

import (
	"os/exec"
	"testing"
)

func TestShellWord(t *testing.T) {
	for _, text := range []string{"/var/lib/kctl/admin.kubeconfig", "/home/a user/k", "it's", "$HOME", "", "a;b", "*"} {
		out, err := exec.Command("sh", "-c", "printf %s "+ShellWord(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %s, which a shell takes for %q, %v", text, ShellWord(text), out, err)
		}
	}
	if got := ShellWord("/a/b-c.d"); got != "/a/b-c.d" {
		t.Errorf("a plain word is %s", got)
	}
}
