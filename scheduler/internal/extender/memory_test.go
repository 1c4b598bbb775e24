package extender

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/framework"
)

// Many empty nodes are few bytes on the wire: what an answer takes in memory must be in
// proportion to its length all the same, or one answer ends the scheduler.
func TestAnswersStaySmallInMemory(t *testing.T) {
	const length, most = 2 << 20, 100 // bytes of memory for each of the answer
	for name, test := range map[string]struct{ begin, repeat, end string }{
		"nodes":       {`{"Nodes":{"items":[{}`, `,{}`, `]}}`},
		"no nodes":    {`{"Nodes":{"items":[null`, `,null`, `]}}`},
		"named twice": {`{"Nodes":{"items":[{"metadata":{"name":"n1"}}`, `,{"metadata":{"name":"n1"}}`, `]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := test.begin + strings.Repeat(test.repeat, length/len(test.repeat)) + test.end
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
			defer server.Close()
			c, err := NewChain([]configv1.Extender{{URLPrefix: server.URL, FilterVerb: "filter"}}, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			kept, err := c.Filter(t.Context(), gpu("p"), nodes(), func(*framework.NodeInfo, *framework.Status) {})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			each := (after.TotalAlloc - before.TotalAlloc) / length
			t.Logf("%d nodes kept, %d bytes of memory for each of the answer", len(kept), each)
			if each > most {
				t.Errorf("an answer of %d MiB took %d MiB", length>>20, (after.TotalAlloc-before.TotalAlloc)>>20)
			}
		})
	}
}

// However long a question with whole nodes is, scores are short.
func TestScoresAreShort(t *testing.T) {
	const names = 1 << 10
	answer := "[{}" + strings.Repeat(",{}", names/2) + "]"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	logs, lines := observer.New(zap.WarnLevel)
	c, err := NewChain([]configv1.Extender{{URLPrefix: server.URL, PrioritizeVerb: "prioritize", Weight: 1}}, zap.New(logs))
	if err != nil {
		t.Fatal(err)
	}
	c.extenders[0].maxNames = names
	large := nodes()
	large[0].Node.Annotations = map[string]string{"long": strings.Repeat("x", 1<<20)}
	c.Prioritize(t.Context(), gpu("p"), large, func(map[string]int64, int64) { t.Error("an endless list of scores is taken") })
	if lines.Len() != 1 || !strings.Contains(fmt.Sprint(lines.All()[0].ContextMap()["error"]), "too long") {
		t.Errorf("said %v", lines.All())
	}
}
