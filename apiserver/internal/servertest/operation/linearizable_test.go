package operation

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// wish is a client's request.
type wish struct {
	verb  string // POST, PUT, DELETE or GET
	key   string
	value int
}

// outcome is a client's result: a status, 0 if the answer did not come or does
// not say what happened; and the value read.
type outcome struct{ code, value int }

// notSent stands for the code if the server can't have seen the request.
const notSent = -1

// register is the model of a config map: its value, 0 if it does not exist.
var register = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{0} },
	Equal: func(a, b any) bool { return a == b },
	Step: func(state, input, output any) []any {
		now, in, out := state.(int), input.(wish), output.(outcome)
		after := effect(now, in)
		switch {
		case out.code == 0:
			return []any{now, after}
		case in.verb == http.MethodGet:
			return when(out.value == now, now)
		case out.code == http.StatusNotFound:
			return when(now == 0 && in.verb != http.MethodPost, now)
		case out.code == http.StatusConflict:
			return when(now != 0, now) // it existed, or somebody was faster
		}
		return when(after != now || in.verb == http.MethodPut && now == in.value, after)
	},
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(wish).key
			byKey[key] = append(byKey[key], o)
		}
		var out [][]porcupine.Operation
		for _, part := range byKey {
			out = append(out, part)
		}
		return out
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// effect is the value after a request that was carried out.
func effect(now int, in wish) int {
	switch {
	case in.verb == http.MethodPost && now == 0, in.verb == http.MethodPut && now != 0:
		return in.value
	case in.verb == http.MethodDelete:
		return 0
	}
	return now
}

func when(ok bool, state int) []any {
	if ok {
		return []any{state}
	}
	return nil
}

// history records what clients did.
type history struct {
	begin time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (h *history) add(client int, in wish, out outcome, called time.Duration) {
	returned := time.Since(h.begin)
	if out.code == notSent {
		return
	}
	if out.code == 0 {
		if in.verb == http.MethodGet {
			return
		}
		returned = time.Hour // it may still be carried out
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: client, Input: in, Call: int64(called), Output: out, Return: int64(returned)})
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

func configMapRequest(ctx context.Context, client *http.Client, address string, in wish) outcome {
	path := address + "/api/v1/namespaces/default/configmaps"
	if in.verb != http.MethodPost {
		path += "/" + in.key
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"v":"%d"}}`, in.key, in.value)
	if in.verb == http.MethodGet || in.verb == http.MethodDelete {
		body = ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, in.verb, path, strings.NewReader(body))
	if err != nil {
		return outcome{}
	}
	r.Header.Set("Authorization", "Bearer master")
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return outcome{code: notSent}
	}
	if err != nil {
		return outcome{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusForbidden ||
		res.StatusCode == http.StatusUnauthorized {
		return outcome{}
	}
	out := outcome{code: res.StatusCode}
	var read struct {
		Data struct {
			V int `json:",string"`
		}
	}
	if in.verb == http.MethodGet && res.StatusCode == http.StatusOK && json.Unmarshal(text, &read) == nil {
		out.value = read.Data.V
	}
	return out
}

// forwarded is a port that forwards to a socket whenever that exists.
func forwarded(t *testing.T, socket string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial("unix", socket)
			if err != nil {
				_ = outside.Close()
				continue
			}
			both := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close(); _ = from.Close() }
			go both(inside, outside)
			go both(outside, inside)
		}
	}()
	return listener.Addr().String()
}

// Creates, updates, deletes and reads through two servers on one etcd, while
// each of the three is stopped and started, appear to happen one after the
// other, each between its call and its answer.
func TestRequestsAreLinearizable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "e")
	_, embedded := etcdtest.StartIn(t, dir)
	if embedded.Socket == "" {
		t.Fatal("the temporary directory's path is too long for a socket: " + dir)
	}
	address := forwarded(t, embedded.Socket)
	onEtcd := func(o *config.Options) { o.EtcdServers = []string{"http://" + address} }
	var addresses [2]atomic.Value
	servers := [2]*cluster{start(t, onEtcd), start(t, onEtcd)}
	for i, s := range servers {
		addresses[i].Store(s.Address)
	}
	h := &history{begin: time.Now()}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 6 {
		clients.Go(func() { h.ask(t.Context(), n, &addresses, stop) })
	}
	progress := func() { // both servers answer again
		from := h.len()
		servers[0].Until("requests go on", func(context.Context) bool { return h.len() >= from+150 })
	}
	for i := range 2 {
		progress()
		if err := servers[i].Stop(); err != nil {
			t.Error(err)
		}
		servers[i].Run(servers[i].Options)
		addresses[i].Store(servers[i].Address)
		progress()
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
		_, embedded = etcdtest.StartIn(t, dir)
	}
	progress()
	close(stop)
	clients.Wait()
	h.check(t)
}

// ask has a client send requests, one after the other, until stop is closed.
func (h *history) ask(ctx context.Context, n int, addresses *[2]atomic.Value, stop <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, //nolint:gosec // loopback
	}}
	defer client.CloseIdleConnections()
	verbs := []string{http.MethodPost, http.MethodPut, http.MethodPut, http.MethodDelete, http.MethodGet, http.MethodGet, http.MethodGet}
	random := rand.New(rand.NewPCG(uint64(n), 3))
	for i := 1; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		in := wish{key: fmt.Sprint("k", random.IntN(4)), value: n*100000 + i, verb: verbs[random.IntN(len(verbs))]}
		called := time.Since(h.begin)
		h.add(n, in, configMapRequest(ctx, client, addresses[random.IntN(2)].Load().(string), in), called)
	}
}

func (h *history) check(t *testing.T) {
	result, _ := porcupine.CheckOperationsVerbose(register.ToModel(), h.all, 20*time.Second)
	switch result {
	case porcupine.Illegal:
		t.Error("no order of the requests explains the answers")
	case porcupine.Unknown:
		t.Error("no verdict: too many requests were left without an answer")
	}
	unknown := 0
	for _, o := range h.all {
		if o.Output.(outcome).code == 0 {
			unknown++
		}
	}
	t.Logf("%d requests, %d without an answer: %s", len(h.all), unknown, result)
}
