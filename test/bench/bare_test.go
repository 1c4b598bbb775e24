package bench_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/v1"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kctl/proto/core"
)

// bareCreates is the least work that a create can be for a server that knows
// what it stores: an HTTPS server that decodes the pod that it is sent, encodes
// one as large as stored pods are, and commits that to etcd if there is none of
// that name. It authenticates, validates, defaults and admits nothing, and has
// no watchers.
type bareCreates struct {
	etcd   *clientv3.Client
	stored core.Pod
}

// startBareCreates starts such a server over an etcd, for pods like the given
// one.
func startBareCreates(b *testing.B, endpoint, stored string) *server {
	h := &bareCreates{etcd: etcdClient(b, endpoint)}
	if err := core.Decode([]byte(stored), &h.stored); err != nil {
		b.Fatal(err)
	}
	return startHandler(b, h)
}

func (h *bareCreates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, err := h.create(r.Context(), r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(value)))
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(value)
}

func (h *bareCreates) create(ctx context.Context, body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var sent core.Pod
	if err := core.Decode(text, &sent); err != nil {
		return nil, err
	}
	pod := h.stored
	pod.Name = sent.Name
	value, err := fast.Marshal(&pod, json.DefaultOptionsV1())
	if err != nil {
		return nil, err
	}
	key := "/bare/" + pod.Name
	_, err = h.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, string(value))).Commit()
	return value, err
}
