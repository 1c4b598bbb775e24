package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// hurried is a clock whose timers have always fired.
type hurried struct{ clock.RealClock }

func (hurried) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

var errEnough = errors.New("enough")

func change(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", kind, name, version)
}

// TestChanges plays the ways in which watches end. Each step answers one
// request; the requested versions are recorded.
func TestChanges(t *testing.T) {
	const gone = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`
	cases := []struct {
		name  string
		steps []string // what each watch answers; "!" breaks the connection
		asked string   // the requested versions
		seen  string
		err   string
		one   string // the object's name, if there is only one
		list  string // what a list returns when a watch starts over
	}{
		{name: "taken up where it ended", steps: []string{change("ADDED", "a", "11"), change("ADDED", "stop", "12")}, asked: "10 11", seen: "a stop", err: "enough"},
		{name: "bookmarks move on", steps: []string{change("BOOKMARK", "", "20"), change("ADDED", "stop", "21")}, asked: "10 20", seen: "stop", err: "enough"},
		{name: "broken connection", steps: []string{change("ADDED", "a", "11") + "!", "!", "!", change("ADDED", "stop", "12")}, asked: "10 11 11 11", seen: "a stop",
			err: "enough"},
		{name: "expired starts over", steps: []string{gone, change("ADDED", "stop", "30")}, asked: "10 ", seen: "stop", err: "enough"},
		{name: "deleted meanwhile", steps: []string{gone}, asked: "10", seen: "DELETED", err: "enough", one: "a", list: `{"kind":"PodList","items":[]}`},
		{name: "still there", steps: []string{gone, change("MODIFIED", "stop", "30")}, asked: "10 ", seen: "stop", err: "enough", one: "a",
			list: `{"kind":"PodList","items":[{"metadata":{"name":"a"}}]}`},
		{name: "never there", steps: []string{"!"}, asked: "10", err: "EOF"},
		{name: "garbage", steps: []string{change("ADDED", "a", "11") + "<html>"}, asked: "10", seen: "a", err: "invalid character"},
		{name: "no object", steps: []string{`{"type":"ADDED","object":null}` + "\n"}, asked: "10", err: "decode answer: it is no object"},
		{name: "no event", steps: []string{change("ADDED", "a", "11") + `["ADDED"]`}, asked: "10", seen: "a", err: "cannot unmarshal array"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex // the handlers may end after the client
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					fmt.Fprint(w, c.list)
					return
				}
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
			k := frame.New(frame.Streams{Err: io.Discard}, hurried{})
			var seen []string
			flags := pflag.NewFlagSet("kctl", pflag.ContinueOnError)
			k.Flags.Add(flags)
			if err := flags.Set("server", server.URL); err != nil {
				t.Fatal(err)
			}
			pods := Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: "default", ObjectName: c.one}
			err := Changes(context.Background(), k, Watch{Target: pods, Version: "10"}, func(event rest.Event) error {
				object, err := Decode(event.Object)
				if err != nil {
					return err
				}
				if event.Type == "DELETED" {
					seen = append(seen, event.Type)
					return errEnough
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
