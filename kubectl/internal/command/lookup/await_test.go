package lookup

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/proto/core"
)

// An object is gone with its type: with the definition of a custom resource, for which the
// server has no path from then on.
func TestUntilGoneWithItsType(t *testing.T) {
	const there = `{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a","uid":"u"}}]}`
	for name, list := range map[string]string{"before the list": "", "before the watch": there} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" && list != "" {
					fmt.Fprint(w, list)
					return
				}
				http.NotFound(w, r)
			}))
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			k := frame.New(frame.Streams{Err: io.Discard}, hurried{})
			flags := pflag.NewFlagSet("kctl", pflag.ContinueOnError)
			k.Flags.Add(flags)
			if err := flags.Set("server", server.URL); err != nil {
				t.Fatal(err)
			}
			target := Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: "default", ObjectName: "a"}
			if err := UntilGone(t.Context(), k, target, "u"); err != nil {
				t.Error(err)
			}
		})
	}
}
