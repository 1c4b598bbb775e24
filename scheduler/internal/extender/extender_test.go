package extender

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// service answers each verb as it is told, and records the requests.
type service struct {
	answers map[string]string

	mu        sync.Mutex
	questions []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.questions = append(s.questions, r.Method+" "+r.URL.Path+" "+string(body))
	s.mu.Unlock()
	answer, known := s.answers[strings.TrimPrefix(r.URL.Path, "/x/")]
	if !known {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, answer)
}

func (s *service) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.questions, "\n")
}

// chain has one extender, which s answers.
func chain(t *testing.T, s *service, change func(*configv1.Extender)) *Chain {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := configv1.Extender{URLPrefix: server.URL + "/x"}
	change(&config)
	c, err := NewChain([]configv1.Extender{config}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nodes() []*framework.NodeInfo {
	return []*framework.NodeInfo{fixture.NodeInfo(fixture.Node("n1")), fixture.NodeInfo(fixture.Node("n2")), fixture.NodeInfo(fixture.Node("n3"))}
}

func gpu(name string) *core.Pod { return fixture.Pod(name, fixture.Requests("example.com/gpu", "1")) }

func TestFilter(t *testing.T) {
	verb := func(e *configv1.Extender) { e.FilterVerb = "filter" }
	byName := func(e *configv1.Extender) { e.FilterVerb, e.NodeCacheCapable = "filter", true }
	managed := func(e *configv1.Extender) {
		e.FilterVerb, e.ManagedResources = "filter", []configv1.ExtenderManagedResource{{Name: "example.com/gpu"}}
	}
	ignorable := func(e *configv1.Extender) { e.FilterVerb, e.Ignorable = "filter", true }
	const names, whole = `{"NodeNames":["n1"],"FailedNodes":{"n2":"busy"},"FailedAndUnresolvableNodes":{"n3":"no such device"}}`,
		`{"Nodes":{"items":[{"metadata":{"name":"n2"}},{"metadata":{"name":"n3"}}]}}`
	for name, test := range map[string]struct {
		config  func(*configv1.Extender)
		answer  string
		pod     *core.Pod
		kept    string
		refused string
		asked   string // part of the request; empty: no request is sent
		err     string
	}{
		"by name": {config: byName, answer: names, pod: gpu("p"), kept: "n1", asked: `"NodeNames":["n1","n2","n3"]`,
			refused: "n2:Unschedulable:busy n3:UnschedulableAndUnresolvable:no such device"},
		"whole nodes": {config: verb, answer: whole, pod: gpu("p"), kept: "n2 n3", asked: `"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"`,
			refused: "n1:Unschedulable:node(s) were refused by an extender"},
		"of its resource": {config: managed, answer: whole, pod: gpu("p"), kept: "n2 n3", asked: "gpu",
			refused: "n1:Unschedulable:node(s) were refused by an extender"},
		"not of its resource":     {config: managed, answer: whole, pod: fixture.Pod("p"), kept: "n1 n2 n3"},
		"no verb":                 {config: func(*configv1.Extender) {}, pod: gpu("p"), kept: "n1 n2 n3"},
		"error":                   {config: verb, answer: `{"Error":"out of order"}`, pod: gpu("p"), asked: "gpu", err: "out of order"},
		"error, ignorable":        {config: ignorable, answer: `{"Error":"out of order"}`, pod: gpu("p"), asked: "gpu", kept: "n1 n2 n3"},
		"no JSON":                 {config: verb, answer: `<html>`, pod: gpu("p"), asked: "gpu", err: "invalid character"},
		"no nodes, not even none": {config: verb, answer: `{}`, pod: gpu("p"), asked: "gpu", err: "has no list of nodes"},
		"500":                     {config: func(e *configv1.Extender) { e.FilterVerb = "other" }, pod: gpu("p"), asked: "gpu", err: "500 Internal Server Error"},
	} {
		s := &service{answers: map[string]string{"filter": test.answer}}
		var refused []string
		kept, err := chain(t, s, test.config).Filter(t.Context(), test.pod, nodes(), func(n *framework.NodeInfo, status *framework.Status) {
			refused = append(refused, n.Name()+":"+status.Code().String()+":"+status.Message())
		})
		var left []string
		for _, n := range kept {
			left = append(left, n.Name())
		}
		if got := strings.Join(left, " "); got != test.kept || strings.Join(refused, " ") != test.refused {
			t.Errorf("%s: kept %q, refused %q", name, got, refused)
		}
		if !strings.Contains(fmt.Sprint(err), test.err) || (err == nil) != (test.err == "") {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
		}
		if asked := s.asked(); !strings.Contains(asked, test.asked) || (asked == "") != (test.asked == "") {
			t.Errorf("%s: asked %s", name, asked)
		}
	}
}

func TestPrioritize(t *testing.T) {
	s := &service{answers: map[string]string{"rank": `[{"Host":"n1","Score":10},{"Host":"n2","Score":3},{"Host":"n3","Score":99}]`}}
	scores := map[string]int64{}
	rank := func(e *configv1.Extender) { e.PrioritizeVerb, e.Weight = "rank", 5 }
	chain(t, s, rank).Prioritize(t.Context(), gpu("p"), nodes(), func(given map[string]int64, weight int64) {
		for host, score := range given {
			scores[host] += score * weight
		}
	})
	if want := map[string]int64{"n1": 500, "n2": 150, "n3": 4950}; !maps.Equal(scores, want) {
		t.Errorf("%v, want %v", scores, want)
	}
	chain(t, &service{}, rank).Prioritize(t.Context(), gpu("p"), nodes(), func(map[string]int64, int64) {
		t.Error("an extender that fails has scores")
	})
}

func TestBind(t *testing.T) {
	binds := func(e *configv1.Extender) {
		e.BindVerb, e.ManagedResources = "bind", []configv1.ExtenderManagedResource{{Name: "example.com/gpu"}}
	}
	s := &service{answers: map[string]string{"bind": `{}`}}
	c := chain(t, s, binds)
	if bound, err := c.Bind(t.Context(), fixture.Pod("p"), "n1"); bound || err != nil {
		t.Errorf("a pod that is not its: %v %v", bound, err)
	}
	pod := gpu("p")
	if bound, err := c.Bind(t.Context(), pod, "n1"); !bound || err != nil {
		t.Errorf("%v %v", bound, err)
	}
	if want := fmt.Sprintf(`POST /x/bind {"PodName":"p","PodNamespace":"default","PodUID":%q,"Node":"n1"}`, pod.UID); s.asked() != want {
		t.Errorf("asked %s, want %s", s.asked(), want)
	}
	if bound, err := chain(t, &service{answers: map[string]string{"bind": `{"Error":"taken"}`}}, binds).Bind(t.Context(), pod, "n1"); !bound || err == nil {
		t.Errorf("refused: %v %v", bound, err)
	}
	passedOver := func(e *configv1.Extender) { binds(e); e.Ignorable = true }
	if bound, err := chain(t, &service{answers: map[string]string{"bind": `{"Error":"taken"}`}}, passedOver).Bind(t.Context(), pod, "n1"); bound || err != nil {
		t.Errorf("refused by one that may be passed over: %v %v", bound, err)
	}
}

// Ignorable extenders are called last, as by upstream.
func TestOrder(t *testing.T) {
	var configs []configv1.Extender
	if err := json.Unmarshal([]byte(`[{"urlPrefix":"http://a","ignorable":true},{"urlPrefix":"http://b"},{"urlPrefix":"http://c","ignorable":true},{"urlPrefix":"http://d"}]`), &configs); err != nil {
		t.Fatal(err)
	}
	c, err := NewChain(configs, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	var order string
	for _, e := range c.extenders {
		order += strings.TrimPrefix(e.URLPrefix, "http://")
	}
	if order != "bdac" {
		t.Errorf("asked in the order %s", order)
	}
}

func TestPreempt(t *testing.T) {
	low, lower := fixture.Pod("low"), fixture.Pod("lower")
	low.UID, lower.UID = "1", "2"
	infos := []*framework.PodInfo{framework.NewPodInfo(low), framework.NewPodInfo(lower)}
	candidates := map[string]Victims{"n1": {Pods: infos, Violations: 1}, "n2": {Pods: infos[:1]}}
	names := func(left map[string]Victims) string {
		var out []string
		for node, victims := range left {
			for _, v := range victims.Pods {
				out = append(out, node+":"+v.Pod.Name)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for name, test := range map[string]struct {
		answer string
		change func(*configv1.Extender)
		want   string
		asked  string
		err    bool
	}{
		"fewer": {answer: `{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"2"}]}}}`, want: "n1:lower", asked: `"NodeNameToVictims":{"n1":{"Pods":[{`},
		"by name": {answer: `{"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"1"}]}}}`, change: func(e *configv1.Extender) { e.NodeCacheCapable = true },
			want: "n2:low", asked: `"n2":{"Pods":[{"UID":"1"}],"NumPDBViolations":0}`},
		"none":             {answer: `{}`, asked: "POST"},
		"nobody leaves":    {answer: `{"NodeNameToMetaVictims":{"n1":{}}}`, asked: "POST"},
		"another node":     {answer: `{"NodeNameToMetaVictims":{"n3":{}}}`, asked: "POST", err: true},
		"another victim":   {answer: `{"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"2"}]}}}`, asked: "POST", err: true},
		"broken":           {answer: `x`, asked: "POST", err: true},
		"broken, ignored":  {answer: `x`, change: func(e *configv1.Extender) { e.Ignorable = true }, want: "n1:low n1:lower n2:low", asked: "POST"},
		"not asked at all": {change: func(e *configv1.Extender) { e.PreemptVerb = "" }, want: "n1:low n1:lower n2:low"},
	} {
		s := &service{answers: map[string]string{"preempt": test.answer}}
		c := chain(t, s, func(e *configv1.Extender) {
			e.PreemptVerb = "preempt"
			if test.change != nil {
				test.change(e)
			}
		})
		left, err := c.Preempt(t.Context(), fixture.Pod("p"), candidates)
		if names(left) != test.want || (err != nil) != test.err || !strings.Contains(s.asked(), test.asked) {
			t.Errorf("%s: left %q, %v; asked %s", name, names(left), err, s.asked())
		}
	}
}

func TestConfiguration(t *testing.T) {
	for want, text := range map[string]string{
		"extenders[0].urlPrefix":                 `[{"urlPrefix":"localhost:80"}]`,
		"extenders[0].weight":                    `[{"urlPrefix":"http://x","prioritizeVerb":"p"}]`,
		"extenders[0].weight: Invalid value: 92": `[{"urlPrefix":"http://x","prioritizeVerb":"p","weight":9223372036854775807}]`,
		"extenders[0].httpTimeout":               `[{"urlPrefix":"http://x","httpTimeout":"-1s"}]`,
		"extenders[1].bindVerb":                  `[{"urlPrefix":"http://x","bindVerb":"b"},{"urlPrefix":"http://y","bindVerb":"b"}]`,
		"extenders[0].managedResources":          `[{"urlPrefix":"http://x","managedResources":[{"name":"cpu"}]}]`,
		"extenders[0].tlsConfig":                 `[{"urlPrefix":"https://x","tlsConfig":{"caFile":"` + t.TempDir() + `/none"}}]`,
		"extenders[0].enableHTTPS":               `[{"urlPrefix":"http://x","enableHTTPS":true}]`,
	} {
		var configs []configv1.Extender
		if err := json.Unmarshal([]byte(text), &configs); err != nil {
			t.Fatal(err)
		}
		if _, err := NewChain(configs, zap.NewNop()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	var none *Chain
	if kept, err := none.Filter(t.Context(), gpu("p"), nodes(), nil); len(kept) != 3 || err != nil {
		t.Errorf("without extenders: %v %v", kept, err)
	}
}

// An extender whose certificate is from its own CA is trusted only with that
// CA.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(&service{answers: map[string]string{"bind": `{}`}})
	defer server.Close()
	config := configv1.Extender{URLPrefix: server.URL + "/x", BindVerb: "bind", EnableHTTPS: true}
	for want, security := range map[bool]*configv1.ExtenderTLSConfig{false: nil, true: {Insecure: true}} {
		config.TLSConfig = security
		c, err := NewChain([]configv1.Extender{config}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Bind(t.Context(), gpu("p"), "n1"); (err == nil) != want {
			t.Errorf("with %+v: %v", security, err)
		}
	}
}
