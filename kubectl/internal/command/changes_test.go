package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/discover"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// hurried is a clock whose timers have always run out.
type hurried struct{ clock.RealClock }

func (hurried) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

var errEnough = errors.New("enough")

func change(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", kind, name, version)
}

// TestChanges plays the ways in which watches end. Each step answers one
// request; from each, the versions that were asked for are noted.
func TestChanges(t *testing.T) {
	const gone = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`
	cases := []struct {
		name  string
		steps []string // what each watch answers; "!" breaks the connection
		asked string   // the versions asked for
		seen  string
		err   string
	}{
		{"taken up where it ended", []string{change("ADDED", "a", "11"), change("ADDED", "stop", "12")}, "10 11", "a stop", "enough"},
		{"bookmarks move on", []string{change("BOOKMARK", "", "20"), change("ADDED", "stop", "21")}, "10 20", "stop", "enough"},
		{"broken connection", []string{change("ADDED", "a", "11") + "!", "!", "!", change("ADDED", "stop", "12")}, "10 11 11 11", "a stop", "enough"},
		{"expired starts over", []string{gone, change("ADDED", "stop", "30")}, "10 ", "stop", "enough"},
		{"never there", []string{"!"}, "10", "", "EOF"},
		{"garbage", []string{change("ADDED", "a", "11") + "<html>"}, "10", "a", "invalid character"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex // the handlers' ends are not ordered before the client's
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				step := c.steps[min(len(asked), len(c.steps)-1)]
				asked = append(asked, r.URL.Query().Get("resourceVersion"))
				mu.Unlock()
				text, broken := strings.CutSuffix(step, "!")
				if text != "" {
					fmt.Fprint(w, text)
					_ = http.NewResponseController(w).Flush()
				}
				if broken {
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			k := newCLI(Streams{}, hurried{})
			var seen []string
			if err := newRoot(k).PersistentFlags().Set("server", server.URL); err != nil {
				t.Fatal(err)
			}
			pods := target{Resource: discover.Resource{Resource: core.Pods}, namespace: "default"}
			err := k.changes(context.Background(), pods, "10", nil, func(event rest.Event) error {
				object, err := decode(event.Object)
				if err != nil {
					return err
				}
				seen = append(seen, object.GetName())
				if object.GetName() == "stop" {
					return errEnough
				}
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("ended with %v, want %q", err, c.err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(asked, " "); got != c.asked {
				t.Errorf("asked for versions %q, want %q", got, c.asked)
			}
			if got := strings.Join(seen, " "); got != c.seen {
				t.Errorf("saw %q, want %q", got, c.seen)
			}
		})
	}
}
