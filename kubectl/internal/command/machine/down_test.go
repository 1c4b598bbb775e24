package machine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// What a down that is cut short recommends keeps what the down would have kept.
func TestDownThatIsCutShort(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for flag, keeps := range map[string]bool{"--keep-data": true, "--keep-data=false": false} {
		var said bytes.Buffer
		cmd := newDown(frame.New(frame.Streams{In: strings.NewReader(""), Out: &said, Err: &said}, clock.RealClock{}))
		cmd.SetArgs([]string{"--dir", dir, flag})
		cmd.SetOut(&said)
		cmd.SetErr(&said)
		if err := cmd.ExecuteContext(stopped); err == nil {
			t.Errorf("%s: no error", flag)
		}
		if !strings.Contains(said.String(), `"kctl down --dir `+dir) || strings.Contains(said.String(), dir+" --keep-data") != keeps {
			t.Errorf("%s: %s", flag, said.String())
		}
	}
}
