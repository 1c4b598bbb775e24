package extender

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/framework"
)

// TestHostileExtenders: whatever comes instead of an answer, or does not come,
// ends as an error in bounded time and memory; an ignorable extender is
// ignored.
func TestHostileExtenders(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request went elsewhere")
	}))
	defer elsewhere.Close()
	redirect := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, code) }
	}
	text := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		stalls bool
		want   string
	}{
		"never answers":        {stall, true, "exceeded"},
		"stops in mid-answer":  {begin, true, "exceeded"},
		"drips":                {drip, true, "exceeded"},
		"hangs up":             {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "EOF"},
		"sends elsewhere, 307": {redirect(http.StatusTemporaryRedirect), false, "answered 307"},
		"sends elsewhere, 302": {redirect(http.StatusFound), false, "answered 302"},
		"too long":             {flood, false, "too long"},
		"too long, packed":     {pack, false, "too long"},
		"nothing":              {text(""), false, "EOF"},
		"half":                 {text(`{"NodeNames":["n1"`), false, "unexpected EOF"},
		"another type":         {text(`["n1"]`), false, "cannot unmarshal"},
		"names that are none":  {text(`{"NodeNames":[1,2]}`), false, "cannot unmarshal"},
		"null":                 {text(`null`), false, "has no list of nodes"},
		"an error without end": {text(`{"Error":"` + strings.Repeat("x", 1<<19) + `"}`), false, "xxx"},
		"nested without end":   {text(`{"NodeNames":` + strings.Repeat("[", 1<<20)), false, "exceeded max depth"},
		"204":                  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, false, "answered 204"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			for _, ignorable := range []bool{false, true} {
				config := configv1.Extender{URLPrefix: server.URL, FilterVerb: "filter", NodeCacheCapable: true, Ignorable: ignorable}
				if test.stalls {
					config.HTTPTimeout = metav1.Duration{Duration: 50 * time.Millisecond}
				} else {
					config.HTTPTimeout = metav1.Duration{Duration: time.Minute}
				}
				c, err := NewChain([]configv1.Extender{config}, zap.NewNop())
				if err != nil {
					t.Fatal(err)
				}
				c.extenders[0].maxNames = 1 << 20
				kept, err := c.Filter(t.Context(), gpu("p"), nodes(), func(*framework.NodeInfo, *framework.Status) {
					t.Error("a node was refused that the extender did not refuse")
				})
				switch {
				case ignorable && (err != nil || len(kept) != 3):
					t.Errorf("it can be ignored: %d nodes, %v", len(kept), err)
				case !ignorable && (err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1200):
					t.Errorf("%.2000v, want %q", err, test.want)
				}
			}
		})
	}
}

// An attempt that is given up does not wait for an extender.
func TestStalledExtenderIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		stall(w, r)
	}))
	defer server.Close()
	c, err := NewChain([]configv1.Extender{{URLPrefix: server.URL, BindVerb: "bind", HTTPTimeout: metav1.Duration{Duration: time.Hour}}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if bound, err := c.Bind(ctx, gpu("p"), "n1"); !bound || err == nil {
		t.Errorf("%v %v", bound, err)
	}
}

// stall waits until the client has gone.
func stall(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client goes
	<-r.Context().Done()
}

func begin(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `{"NodeNames":[`)
	w.(http.Flusher).Flush()
	stall(w, r)
}

// drip sends a byte now and then, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, `{"NodeNames":["`)
	beat := time.NewTicker(5 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			_, _ = io.WriteString(w, "n")
			w.(http.Flusher).Flush()
		}
	}
}

// flood sends names until nobody reads any more.
func flood(w http.ResponseWriter, _ *http.Request) {
	_, err := io.WriteString(w, `{"NodeNames":["n"`)
	for i := 0; err == nil; i++ {
		_, err = fmt.Fprintf(w, ",%q", strings.Repeat("n", 1<<16))
	}
}

// pack sends a body that is far larger than it looks.
func pack(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	packed := gzip.NewWriter(w)
	_, _ = fmt.Fprintf(packed, `{"NodeNames":[%q]}`, strings.Repeat("n", 4<<20))
	_ = packed.Close()
}
