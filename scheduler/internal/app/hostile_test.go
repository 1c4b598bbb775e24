package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/scheduler/internal/config"
	"kctl/scheduler/internal/fixture"
)

// hostileServer is an API server of pods and nodes that a test lets say anything on its
// watches, and answer Bindings as it likes.
type hostileServer struct {
	t       *testing.T
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	events  map[string][]string
	objects map[string]map[string]core.Object
	bound   map[types.UID][]string // the Bindings that were carried out
	sent    map[types.UID]int      // and those that came
	// answer decides about the n-th Binding of a pod: whether it is carried out, and
	// with which status it is answered; 0 for none at all.
	answer func(pod string, n int) (carried bool, code int)
}

func newHostileServer(t *testing.T) *hostileServer {
	return &hostileServer{
		t:       t,
		changed: make(chan struct{}),
		events:  map[string][]string{},
		bound:   map[types.UID][]string{},
		sent:    map[types.UID]int{},
		objects: map[string]map[string]core.Object{"pods": {}, "nodes": {}},
		answer:  func(string, int) (bool, int) { return true, http.StatusCreated },
	}
}

func (s *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := parts[len(parts)-1]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, resource)
	case resource == "binding":
		s.bind(w, r, parts[len(parts)-2])
	case r.Method == http.MethodGet && len(parts) > 2 && parts[len(parts)-2] == "pods":
		s.get(w, resource)
	case r.Method != http.MethodGet:
		_, _ = io.Copy(w, r.Body)
	default:
		s.list(w, resource)
	}
}

// list gives the objects at the revision of the newest event.
func (s *hostileServer) list(w http.ResponseWriter, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := slices.Collect(maps.Values(s.objects[resource]))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": fixture.ListKind(resource), "metadata": metav1.ListMeta{ResourceVersion: strconv.Itoa(len(s.events[resource]) + 1)}, "items": items,
	})
}

func (s *hostileServer) get(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, known := s.objects["pods"][name]
	if !known {
		s.fail(w, http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(pod)
}

// end is in place of an event: the watch ends there, once.
const end = "end"

// watch sends every event from the revision on, whatever it is.
func (s *hostileServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	for next := max(from-1, 0); ; {
		s.mu.Lock()
		events, changed, ends := s.events[resource][next:], s.changed, false
		if at := slices.Index(events, end); at >= 0 {
			events[at], ends = "", true
			events = events[:at]
		}
		text := strings.Join(events, "\n") + "\n"
		next += len(events)
		s.mu.Unlock()
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
		if ends {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *hostileServer) bind(w http.ResponseWriter, r *http.Request, name string) {
	var binding corev1.Binding
	if err := json.NewDecoder(r.Body).Decode(&binding); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.sent[binding.UID]++
	carried, code := s.answer(name, s.sent[binding.UID])
	object, known := s.objects["pods"][name]
	pod, _ := object.(*core.Pod)
	switch {
	case !known || pod.UID != binding.UID:
		code = http.StatusNotFound
	case pod.Spec.NodeName != "":
		code = http.StatusConflict
	case carried:
		pod = pod.DeepCopy()
		pod.Spec.NodeName = binding.Target.Name
		s.bound[pod.UID] = append(s.bound[pod.UID], binding.Target.Name)
		s.put("pods", "MODIFIED", pod)
	}
	s.mu.Unlock()
	switch code {
	case 0:
		panic(http.ErrAbortHandler)
	case http.StatusCreated:
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"kind":"Status","status":"Success"}`)
	default:
		s.fail(w, code)
	}
}

func (s *hostileServer) fail(w http.ResponseWriter, code int) {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   reasons[code],
		Code:     int32(code),
	})
}

// put stores an object at a new revision and tells the watchers. The caller holds s.mu.
func (s *hostileServer) put(resource, event string, object core.Object) {
	object.SetResourceVersion(strconv.Itoa(len(s.events[resource]) + 2))
	if event == "DELETED" {
		delete(s.objects[resource], object.GetName())
	} else {
		s.objects[resource][object.GetName()] = object
	}
	data, err := json.Marshal(object)
	if err != nil {
		s.t.Error(err)
	}
	s.tell(resource, fmt.Sprintf(`{"type":%q,"object":%s}`, event, data))
}

// tell sends a line. The caller holds s.mu.
func (s *hostileServer) tell(resource string, lines ...string) {
	s.events[resource] = append(s.events[resource], lines...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// change runs under the lock.
func (s *hostileServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// await waits for pods to be bound.
func (s *hostileServer) await(pods ...string) {
	s.t.Helper()
	for {
		s.mu.Lock()
		changed := s.changed
		missing := slices.DeleteFunc(slices.Clone(pods), func(name string) bool { return len(s.bound[types.UID("uid-"+name)]) > 0 })
		s.mu.Unlock()
		if len(missing) == 0 {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			s.t.Fatalf("not bound: %q", missing)
		}
	}
}

// schedule runs a whole scheduler with a configuration on the server until the test ends.
func (s *hostileServer) schedule(configured string) {
	server := httptest.NewServer(s)
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig,
		[]byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
			`"users":[{"name":"u","user":{}}],"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}]}`), 0o600); err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+configured), 0o600); err != nil {
		s.t.Fatal(err)
	}
	options, flags := config.NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{"--config=" + file, "--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false"}); err != nil {
		s.t.Fatal(err)
	}
	configuration, err := options.Complete()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options, configuration, nil, zaptest.NewLogger(s.t)) }()
	s.t.Cleanup(func() {
		cancel()
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
}

func podNamed(name string, changes ...func(*core.Pod)) *core.Pod {
	return fixture.Pod(name, append(changes, func(pod *core.Pod) { pod.UID = types.UID("uid-" + name) })...)
}

// A server whose watches say nonsense, and which loses the answers to Bindings, neither
// stops the scheduler nor makes it count pods that are not there: in the end as many pods
// fit as the nodes have room for, each bound once.
func TestHostileWatches(t *testing.T) {
	const room = 20
	cpu := fixture.Requests("cpu", "1")
	s := newHostileServer(t)
	newPod := func(name string) *core.Pod { return podNamed(name, cpu) }
	create := func(names ...string) {
		for _, name := range names {
			s.change(func() { s.put("pods", "ADDED", newPod(name)) })
		}
	}
	named := func(prefix string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("%s%d", prefix, i))
		}
		return names
	}
	s.put("nodes", "ADDED", fixture.Node("n", fixture.Allocatable("cpu", strconv.Itoa(room), "pods", "100")))
	s.answer = func(pod string, n int) (bool, int) {
		if n > 1 || !strings.HasPrefix(pod, "lost") {
			return true, http.StatusCreated
		}
		return true, []int{0, http.StatusConflict, http.StatusInternalServerError, http.StatusGatewayTimeout}[int(pod[4]-'0')]
	}
	s.schedule("")

	lost := named("lost", 4)
	create(lost...)
	s.await(lost...)
	gone := slices.Clone(lost)
	for i, nonsense := range [][]string{
		{`{"type":"ADDED","object":{}}`}, {`{"type":"ADDED","object":null}`}, {`{"type":"BOOKMARK","object":{}}`}, {`{"type":"SEEN"}`}, {`<html>`}, {end},
		{`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}`, end},
		{`{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`},
		{`{"type":"MODIFIED","object":{"metadata":{"namespace":"default","name":"lost0","uid":"uid-lost0","resourceVersion":"9"},"spec":{"containers":7}}}`},
	} {
		s.change(func() { s.tell("pods", nonsense...); s.tell("nodes", nonsense...) })
		after := fmt.Sprintf("after%d", i)
		create(after)
		s.await(after)
		gone = append(gone, after)
	}

	// The node goes and comes back while a pod is assumed on it; pods get successors of
	// their names, whose predecessors' ends are told late.
	s.change(func() {
		node := s.objects["nodes"]["n"].(*core.Node).DeepCopy()
		s.put("nodes", "DELETED", node)
		again := fixture.Node("n", fixture.Allocatable("cpu", strconv.Itoa(room), "pods", "100"))
		again.UID = "another"
		s.put("pods", "ADDED", newPod("between"))
		s.put("nodes", "ADDED", again)
	})
	s.await("between")
	s.change(func() {
		for _, name := range append(gone, "between") {
			old := s.objects["pods"][name].(*core.Pod)
			successor := newPod(name)
			successor.UID, successor.Spec.NodeName = types.UID("uid-successor-of-"+name), "n"
			s.put("pods", "ADDED", successor)
			successor = successor.DeepCopy()
			late := old.DeepCopy()
			s.put("pods", "DELETED", late)
			s.put("pods", "DELETED", successor)
		}
	})
	last := named("last", room)
	create(last...)
	s.await(last...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, nodes := range s.bound {
		if len(nodes) != 1 {
			t.Errorf("%s was bound %d times", uid, len(nodes))
		}
	}
}

// Whatever an extender answers, pods that it is not asked about are placed, and if it can
// be ignored, the others are, too.
func TestHostileExtenderHoldsUpNobodyElse(t *testing.T) {
	text := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		},
		"redirects":                func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"a page":                   text("<html>"),
		"null":                     text("null"),
		"nodes that exist nowhere": text(`{"NodeNames":["x","","x"],"FailedNodes":{"x":"gone","n":"full"}}`),
		"a node twice, and no number": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, map[string]string{"/filter": `{"NodeNames":["n","n","m"]}`, "/prioritize": `[{"Host":"n","Score":NaN}]`,
				"/bind": `<html>`}[r.URL.Path])
		},
		"scores out of range": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, map[string]string{"/filter": `{"NodeNames":["n","m"]}`, "/bind": `{"Error":"no"}`,
				"/prioritize": `[{"Host":"n","Score":9223372036854775807},{"Host":"n","Score":-9223372036854775808},{"Host":"x","Score":7}]`}[r.URL.Path])
		},
	} {
		for _, ignorable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignorable %t", name, ignorable), func(t *testing.T) {
				server := httptest.NewServer(answer)
				t.Cleanup(server.Close)
				s := newHostileServer(t)
				for _, node := range []string{"n", "m"} {
					s.put("nodes", "ADDED", fixture.Node(node, fixture.Allocatable("example.com/device", "8")))
				}
				s.schedule(fmt.Sprintf("extenders: [{urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 1000000, bindVerb: "+
					"bind, nodeCacheCapable: true, "+
					"ignorable: %t, httpTimeout: 50ms, managedResources: [{name: example.com/device}]}]", server.URL, ignorable))
				s.change(func() { s.put("pods", "ADDED", podNamed("asks", fixture.Requests("example.com/device", "1"))) })
				s.change(func() { s.put("pods", "ADDED", podNamed("other")) })
				s.await("other")
				if ignorable && name != "nodes that exist nowhere" && name != "null" { // which are answers: to bind, null is no error
					s.await("asks")
				}
			})
		}
	}
}
