package command

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Lists come in chunks of --chunk-size; those of related objects in chunks of
// kubectl's size.
func TestDescribeAsksInChunks(t *testing.T) {
	var mu sync.Mutex
	var asked []url.Values
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Query())
		switch {
		case strings.HasSuffix(r.URL.Path, "/events"):
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[]}`)
		case r.URL.Query().Get("continue") == "":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[{"metadata":{"name":"one","namespace":"default"}}]}`)
		default:
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"two","namespace":"default"}}]}`)
		}
	})
	c := kctl(t, host, "", "describe", "pods", "--chunk-size=1", "--show-events")
	c.want(t, 0)
	mu.Lock()
	defer mu.Unlock()
	var limits []string
	for _, query := range asked {
		limits = append(limits, query.Get("limit"))
	}
	if got := strings.Join(limits, " "); got != "1 1 500 500" || !strings.Contains(c.out.String(), "two") {
		t.Errorf("asked with the limits %q: %s", got, c.out.String())
	}
}

// Events come in chunks of --chunk-size too, and are sorted as one list.
func TestEventsAskInChunks(t *testing.T) {
	var mu sync.Mutex
	var limits []string
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		limits = append(limits, r.URL.Query().Get("limit"))
		if r.URL.Query().Get("limit") != "" && r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"continue":"more"},"items":[{"reason":"Later","lastTimestamp":"2026-01-02T00:00:00Z"}]}`)
		} else {
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[{"reason":"Sooner","lastTimestamp":"2026-01-01T00:00:00Z"}]}`)
		}
	})
	for flag, want := range map[string]string{"": "500 500", "--chunk-size=1": "1 1", "--chunk-size=0": "", "--chunk-size=1 -o name": "1 1"} {
		limits = nil
		c := kctl(t, host, "", append([]string{"events"}, strings.Fields(flag)...)...)
		c.want(t, 0)
		sooner, later := strings.Index(c.out.String(), "Sooner"), strings.Index(c.out.String(), "Later")
		sorted := want == "" || strings.Contains(flag, "-o") || sooner >= 0 && later > sooner
		if got := strings.Join(limits, " "); got != want || !sorted {
			t.Errorf("events %s asked with the limits %q, want %q:\n%s", flag, got, want, c.out.String())
		}
	}
}

// --record writes the command line where everybody can read it who can read the
// object: secrets are left out.
func TestRecord(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, string(text))
		}
		fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one","namespace":"default"}}`)
	})
	c := kctl(t, host, "", "label", "--token=secret", "pod", "one", "--record", "a=b")
	mu.Lock()
	defer mu.Unlock()
	c.want(t, 0, "Flag --record has been deprecated")
	if len(bodies) != 1 || !strings.Contains(bodies[0], `"kubernetes.io/change-cause":"kctl label pod one a=b --server=`) ||
		!strings.Contains(bodies[0], "--token=CLASSIFIED --record=true") {
		t.Errorf("sent %q", bodies)
	}
	if strings.Contains(c.out.String(), "deprecated") {
		t.Errorf("standard output: %s", c.out.String())
	}
}
